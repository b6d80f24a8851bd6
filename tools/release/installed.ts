import { once } from 'node:events'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

import { toolCall, toolResult } from '@signalbox/testkit/mcp-client'
import type { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { firstLine, nodePackage, run, start } from './environment.ts'
import type { RehearsalReport } from './report.ts'

interface Installation {
  readonly folder: TemporaryFolder
  readonly env: NodeJS.ProcessEnv
  readonly report: RehearsalReport
  /** The version of Node to install and run. */
  readonly node: string
}

interface Installed {
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

/** Installs packages from the local registry into an empty folder, with a separate Node. */
async function install(installation: Installation, name: string, wanted: readonly string[]): Promise<Installed> {
  const { folder, node, report } = installation
  const cwd = folder.join(`${name}-on-${node}`)
  mkdirSync(cwd)
  const manifest = {
    private: true,
    type: 'module',
    dependencies: Object.fromEntries(wanted.map((one) => [one, 'latest'])),
    devDependencies: { [nodePackage()]: node },
  }
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest))
  await run('npm', ['install', '--loglevel=error'], { cwd, env: installation.env })
  const path = `${join(cwd, 'node_modules/.bin')}${delimiter}${installation.env['PATH'] ?? ''}`
  const installed = { cwd, env: { ...installation.env, PATH: path } }
  const version = (await run('node', ['--version'], installed)).trim()
  report.expect(`${name} runs on Node ${node}`, version === `v${node}`, version)
  return installed
}

async function call(http: string, tool: string, args: Readonly<Record<string, unknown>>): Promise<string> {
  const response = await fetch(`${http}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: toolCall(tool, args),
  })
  return toolResult(await response.text()).text
}

/** Installs `signalbox`, starts it on free ports, sends and receives a message over /mcp, and stops it with SIGTERM. */
export async function tryServer(installation: Installation, released: string): Promise<void> {
  const { node, report } = installation
  const installed = await install(installation, 'signalbox', ['signalbox'])
  const shown = (await run('npx', ['signalbox', '--version'], installed)).trim()
  report.expect(`npx signalbox --version on Node ${node} names ${released}`, shown.includes(released), shown)

  const env = { ...installed.env, HTTP_PORT: '0', API_PORT: '0', STORE_PATH: join(installed.cwd, 'data') }
  const child = start(join(installed.cwd, 'node_modules/.bin/signalbox'), [], { cwd: installed.cwd, env })
  const http = await firstLine(child, (line) =>
    line.includes('"signalbox ready"') ? (JSON.parse(line) as { http: string }).http : undefined,
  )
  await call(http, 'queue_send', { channel: 'rehearsal', body: `hello from ${node}` })
  const received = await call(http, 'queue_receive', { channel: 'rehearsal', max_messages: 1 })
  report.expect(`signalbox on Node ${node} returns what was sent`, received.includes(`hello from ${node}`), received)
  const exit = once(child, 'exit') as Promise<[number | null, string | null]>
  child.kill('SIGTERM')
  const [code, signal] = await exit
  report.expect(`signalbox on Node ${node} ends with 0 on SIGTERM`, code === 0, String(code ?? signal))
}

/** Installs `@signalbox/connector-mcp` and an engine, and runs a host that mounts them and calls itself with the official client. */
export async function tryConnector(installation: Installation): Promise<void> {
  const { node, report } = installation
  const installed = await install(installation, 'connector-mcp', [
    '@signalbox/connector-mcp',
    '@signalbox/broker-core',
    '@signalbox/engine-embedded',
    '@modelcontextprotocol/sdk',
  ])
  cpSync(join(import.meta.dirname, 'installed-host.mjs'), join(installed.cwd, 'host.mjs'))
  const output = (await run('node', ['host.mjs'], installed)).trim()
  report.expect(`connector-mcp on Node ${node} answers the official client`, output.endsWith('hello'), output)
}
