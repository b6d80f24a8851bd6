import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

import { testFolder } from '@signalbox/testkit/test-folder'
import { expect } from 'vitest'

const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector/package.json')
const launcher = join(dirname(manifest), 'clients/launcher/build/index.js')

/** The option for the revision: 2025-11-25, 2026-07-28 if the server has it, or only that. */
export type Era = 'legacy' | 'auto' | 'modern'

interface Printed {
  readonly result: {
    readonly tools?: readonly { readonly name: string }[]
    readonly content?: readonly { readonly text: string }[]
    readonly isError?: boolean
  }
}

/** Runs one command of the Inspector against a server; resolves with its output. */
export function inspect(url: string, era: Era, ...args: readonly string[]): Promise<Printed['result']> {
  const home = testFolder()
  const command = ['--cli', url, '--transport', 'http', '--protocol-era', era, '--format', 'json', '--quiet', ...args]
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, MCP_CATALOG_PATH: join(home, 'catalog.json') }
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [launcher, ...command], { env }, (error, stdout, stderr) => {
      if (stdout === '') reject(new Error(stderr, { cause: error }))
      else resolve((JSON.parse(stdout) as Printed).result)
    })
  })
}

/** Calls a tool; resolves with the text of its result. */
export async function call(url: string, era: Era, name: string, args: object): Promise<string> {
  const json = JSON.stringify(args)
  const result = await inspect(url, era, '--method', 'tools/call', '--tool-name', name, '--tool-args-json', json)
  expect([name, result.isError, result.content?.[0]?.text]).toEqual([name, false, expect.any(String)])
  return result.content?.[0]?.text ?? ''
}
