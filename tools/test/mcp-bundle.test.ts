import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { testFolder } from '@signalbox/testkit/test-folder'
import { createConfig, startServer } from 'signalbox'
import { expect, onTestFinished, test } from 'vitest'

import { bundle } from '../mcp-bundle/bundle.ts'
import type { RegistryEntry } from '../mcp-bundle/check.ts'
import { answerWithoutServer, problemsOf, unpack } from '../mcp-bundle/check.ts'
import { readProduct, ROOT } from '../mcp-bundle/product.ts'
import { serverJson } from '../mcp-bundle/server-json.ts'
import { unzip, zip } from '../mcp-bundle/zip.ts'

const product = readProduct()
const archive = bundle(product)
const entry = serverJson(product, archive) as RegistryEntry

async function serverUrl(): Promise<string> {
  const server = await startServer(
    createConfig({ http: { port: 0 }, api: { port: 0 }, store: { path: testFolder() }, log: { level: 'silent' } }),
  )
  onTestFinished(() => server.close())
  return server.http.url
}

test('M27 - the bundle and its registry entry have no problems, and equal sources make equal bundles', () => {
  expect(problemsOf(archive, entry)).toEqual([])
  expect(bundle(product).equals(archive)).toBe(true)
})

test('M27 - the bundle has the manifest, the bridge and the license, and nothing else', () => {
  const files = unzip(archive)
  const others = files.map(({ path }) => path).filter((path) => !/^server\/[a-z-]+\.js$/.test(path))
  expect(others).toEqual(['manifest.json', 'server/package.json', 'LICENSE'])
  expect(JSON.parse(files[0]!.content.toString())).toMatchObject({
    manifest_version: '0.3',
    name: 'signalbox',
    version: product.version,
    server: { type: 'node', entry_point: 'server/index.js', mcp_config: { command: 'node' } },
  })
})

test('M27 - package, registry entry and server card have the same name and version', () => {
  const card = readFileSync(join(ROOT, 'apps/server/src/listeners/server-card.ts'), 'utf8')
  expect(card).toContain(`'${product.mcpName}'`)
  expect(entry).toMatchObject({ name: product.mcpName, version: product.version })
  expect(entry.packages).toEqual([
    expect.objectContaining({ registryType: 'npm', identifier: product.name, version: product.version }),
    expect.objectContaining({ registryType: 'mcpb', fileSha256: expect.stringMatching(/^[a-f0-9]{64}$/) as string }),
  ])
})

test('M27 - the program of the bundle connects a host to the server that its settings name', async () => {
  const url = await serverUrl()
  const client = new Client({ name: 'test', version: '1.0.0' })
  onTestFinished(() => client.close())
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [unpack(archive, testFolder())],
      env: { SIGNALBOX_URL: url, SIGNALBOX_TOKEN: '${user_config.token}' },
      stderr: 'ignore',
    }),
  )
  expect((await client.listTools()).tools).toHaveLength(15)
  const sent = await client.callTool({ name: 'queue_send', arguments: { channel: 'q', body: 'x' } })
  expect(sent).toMatchObject({ isError: false })
})

test('M27 - without a server the program answers with an error that says so', async () => {
  const answer = await answerWithoutServer(unpack(archive, testFolder()))
  expect(JSON.parse(answer)).toMatchObject({
    id: 1,
    error: { message: expect.stringContaining('cannot reach') as string },
  })
})

test('M27 - the check reports a missing module, another hash and another version', () => {
  const incomplete = zip(unzip(archive).filter(({ path }) => path !== 'server/lines.js'))
  expect(problemsOf(incomplete, entry)).toEqual([
    'server/bridge.js imports ./lines.js, which the bundle does not have',
    'server.json: fileSha256 is not that of the bundle',
  ])
  expect(problemsOf(archive, { ...entry, version: '^1.0.0' })).toEqual([
    `server.json: version ^1.0.0; the bundle has ${product.version}`,
  ])
})

test('M27 - an archive that was damaged is refused', () => {
  const damaged = Buffer.from(archive)
  damaged.write('damage', 200)
  expect(() => unzip(damaged)).toThrow(/checksum|invalid|incorrect/)
  expect(() => unzip(archive.subarray(0, -1))).toThrow('no directory')
})
