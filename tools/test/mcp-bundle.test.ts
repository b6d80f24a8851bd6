import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { testFolder } from '@signalbox/testkit/test-folder'
import { strFromU8, unzipSync } from 'fflate'
import { createConfig, startServer } from 'signalbox'
import { expect, onTestFinished, test } from 'vitest'

import { bundle, readProduct, ROOT, zip } from '../mcp-bundle/bundle.ts'
import type { RegistryEntry } from '../mcp-bundle/check.ts'
import { answerWithoutServer, problemsOf, unpack } from '../mcp-bundle/check.ts'
import { schemaProblems, serverJson } from '../mcp-bundle/server-json.ts'

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

test('M27 - the bundle has the manifest, the icon, the bridge and the license, and nothing else', () => {
  const files = unzipSync(archive)
  const others = Object.keys(files).filter((path) => !/^server\/[a-z-]+\.js$/.test(path))
  expect(others).toEqual(['manifest.json', 'server/package.json', 'icon.png', 'LICENSE'])
  expect(JSON.parse(strFromU8(files['manifest.json']!))).toMatchObject({
    manifest_version: '0.3',
    name: 'signalbox',
    version: product.version,
    server: { type: 'node', entry_point: 'server/index.js', mcp_config: { command: 'node' } },
  })
})

test('M27 - package, registry entry and server card have the same name and version', () => {
  const card = readFileSync(join(ROOT, 'apps/server/src/mcp/options.ts'), 'utf8')
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
  const { 'server/host-messages.js': _missing, ...rest } = unzipSync(archive)
  const incomplete = zip(rest)
  expect(problemsOf(incomplete, entry)).toEqual([
    'server/bridge.js imports ./host-messages.js, which the bundle does not have',
    'server.json: fileSha256 is not that of the bundle',
  ])
  expect(problemsOf(archive, { ...entry, version: '^1.0.0' })).toEqual([
    `server.json: version ^1.0.0; the bundle has ${product.version}`,
  ])
})

test('M27 - the entry fits the schema of the registry, and the check reports each rule that it breaks', () => {
  expect(schemaProblems(entry)).toEqual([])
  const { name: _name, ...nameless } = entry
  const [npm, mcpb] = entry.packages
  const { fileSha256: _hash, ...withoutHash } = mcpb!
  const broken: readonly object[] = [
    nameless,
    { ...entry, $schema: 'https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json' },
    { ...entry, name: 'no-namespace' },
    { ...entry, description: 'x'.repeat(101) },
    { ...entry, title: '' },
    { ...entry, websiteUrl: 'ftp://example.com' },
    { ...entry, repository: { url: 'https://example.com' } },
    { ...entry, packages: [{ ...npm, transport: { type: 'http' } }] },
    { ...entry, packages: [{ ...npm, transport: { type: 'streamable-http' } }] },
    { ...entry, packages: [{ ...npm, packageArguments: [{ type: 'positional' }] }] },
    { ...entry, packages: [{ ...npm, packageArguments: [{ type: 'named', value: 'x' }] }] },
    { ...entry, packages: [{ ...npm, environmentVariables: [{ isSecret: true }] }] },
    { ...entry, packages: [withoutHash] },
    { ...entry, packages: [{ ...mcpb, fileSha256: 'ABC' }] },
    { ...entry, packages: [{ ...mcpb, unknown: true }] },
  ]
  for (const each of broken) expect([each, schemaProblems(each)]).not.toEqual([each, []])
})

test('M27 - the release workflow builds the bundle and attaches it with the entry', () => {
  const workflow = readFileSync(join(ROOT, '.github/workflows/release.yml'), 'utf8')
  const [publish, build, attach] = ['nx release publish', 'npm run bundle', 'gh release upload'].map((command) =>
    workflow.indexOf(command),
  )
  expect([publish, build, attach]).not.toContain(-1)
  expect(publish! < build! && build! < attach!).toBe(true)
})

test('M27 - an archive that was damaged is refused', () => {
  const damaged = Buffer.from(archive)
  damaged.write('damage', 200)
  expect(() => problemsOf(damaged, entry)).toThrow('invalid')
  expect(() => problemsOf(archive.subarray(0, -1), entry)).toThrow('invalid')
  const dated = Buffer.from(archive)
  dated.writeUInt16LE(1, 10)
  expect(problemsOf(dated, entry)).toEqual(['server.json: fileSha256 is not that of the bundle'])
})
