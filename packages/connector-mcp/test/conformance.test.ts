import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { testFolder } from '@signalbox/testkit/test-folder'
import { describe, expect, test } from 'vitest'

import { startHost } from './mcp-host.ts'

const run = promisify(execFile)
const require = createRequire(import.meta.url)
const manifest = require.resolve('@modelcontextprotocol/conformance/package.json')
const cli = join(dirname(manifest), 'dist', 'index.js')

describe('MCP conformance', () => {
  test.each(['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'])(
    'conformance 0.1.16 - %s',
    { timeout: 120_000 },
    async (scenario) => {
      const host = await startHost()
      // It writes its results below the folder it runs in.
      const { stdout, stderr } = await run(
        process.execPath,
        [cli, 'server', '--url', host.url, '--scenario', scenario],
        { cwd: testFolder(), timeout: 100_000 },
      )
      const report = `${stdout}${stderr}`
      expect(report).toMatch(/Passed: ([1-9]\d*)\/\1, 0 failed, 0 warnings/)
    },
  )
})
