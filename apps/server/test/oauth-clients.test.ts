import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Stream } from 'node:stream'

import type { OAuthClientProvider, VersionNegotiationMode } from '@modelcontextprotocol/client'
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { testFolder } from '@signalbox/testkit/test-folder'
import { TOOL_NAMES } from '@signalbox/testkit/mcp-tools'
import { describe, expect, onTestFinished, test } from 'vitest'

import { browse } from './support/authorization-server.ts'
import { OAuthMemory } from './support/oauth-clients.ts'
import type { ProtectedServer } from './support/protected-server.ts'
import { serveProtected } from './support/protected-server.ts'
import { governed } from './support/tokens.ts'

/** The memory of a client that also keeps what it discovered. */
class Wallet
  extends OAuthMemory<
    NonNullable<Awaited<ReturnType<OAuthClientProvider['clientInformation']>>>,
    NonNullable<Awaited<ReturnType<OAuthClientProvider['tokens']>>>
  >
  implements OAuthClientProvider
{
  #discovered: Awaited<ReturnType<NonNullable<OAuthClientProvider['discoveryState']>>>

  saveDiscoveryState(state: Parameters<NonNullable<OAuthClientProvider['saveDiscoveryState']>>[0]): void {
    this.#discovered = state
  }

  discoveryState(): ReturnType<NonNullable<OAuthClientProvider['discoveryState']>> {
    return this.#discovered
  }
}

/** A client with the transport that it was last connected by. */
async function connect(
  { url }: ProtectedServer,
  wallet: Wallet,
  mode: VersionNegotiationMode = 'auto',
): Promise<{ readonly client: Client; readonly transport: StreamableHTTPClientTransport }> {
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } })
  const transport = new StreamableHTTPClientTransport(url, { authProvider: wallet })
  onTestFinished(() => client.close())
  await client.connect(transport)
  return { client, transport }
}

/** Sends the user to the URL that the client named last, and the client on with what comes back. */
async function login(wallet: Wallet, transport: StreamableHTTPClientTransport): Promise<void> {
  const { searchParams } = await browse(wallet.visits.at(-1)!)
  await transport.finishAuth(searchParams)
}

/** Connects a client that has no token yet. */
async function loginFirst(setting: ProtectedServer, wallet: Wallet, mode: VersionNegotiationMode = 'auto') {
  await expect(connect(setting, wallet, mode)).rejects.toBeInstanceOf(UnauthorizedError)
  const transport = new StreamableHTTPClientTransport(setting.url, { authProvider: wallet })
  await login(wallet, transport)
  return connect(setting, wallet, mode)
}

const SEND = { name: 'queue_send', arguments: { channel: 'q', body: 'x' } }
const SCOPE = 'signalbox:read signalbox:write signalbox:agents'

const bridge = join(dirname(createRequire(import.meta.url).resolve('mcp-remote/package.json')), 'dist/proxy.js')

/** The first URL that a bridge asks its user to visit. */
function visitOf(output: Stream | null): Promise<URL> {
  const visit = Promise.withResolvers<URL>()
  let text = ''
  output?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    const [, url] = /visiting:\s+(http\S+)\s/.exec(text) ?? []
    if (url !== undefined) visit.resolve(new URL(url))
  })
  output?.on('end', () => visit.reject(new Error(`the bridge named no URL: ${text}`)))
  return visit.promise
}

test('S10 - a host that starts local programs logs its user in through mcp-remote', async () => {
  const { url, resource, senders, as } = await serveProtected()
  const client = new Client({ name: 'test', version: '1.0.0' })
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [bridge, url.href],
    // The bridge opens a browser, here a program that does nothing.
    env: { MCP_REMOTE_CONFIG_DIR: testFolder(), PATH: process.env['PATH'] ?? '', BROWSER: 'true' },
    stderr: 'pipe',
  })
  onTestFinished(() => client.close())
  const visited = visitOf(transport.stderr).then(async (visit) => fetch(await browse(visit)))
  await client.connect(transport)
  expect((await visited).status).toBe(200)
  expect(await client.callTool(SEND)).toMatchObject({ isError: false })
  expect(senders).toEqual(['alice'])
  expect(as.asked).toEqual([{ scope: expect.stringContaining(SCOPE), resource }])
})

describe('the official client and a real authorization server', () => {
  test.each([
    ['2025-11-25', 'legacy'],
    ['2026-07-28', 'auto'],
    ['2026-07-28', { pin: '2026-07-28' }],
  ] as const)(
    'S10 - from its URL alone the client of %s (%j) finds the authorization server, and calls as the user',
    async (version, mode) => {
      const setting = await serveProtected()
      const wallet = new Wallet()
      const { client } = await loginFirst(setting, wallet, mode)
      expect(client.getNegotiatedProtocolVersion()).toBe(version)
      expect((await client.listTools()).tools).toHaveLength(TOOL_NAMES.length)
      expect(await client.callTool(SEND)).toMatchObject({ isError: false })
      expect(setting.senders).toEqual(['alice'])
      expect(setting.as.asked).toEqual([{ scope: expect.stringContaining(SCOPE), resource: setting.resource }])
      expect(wallet.held?.scope).toContain(SCOPE)
    },
  )

  test('S11 - a client with too few scopes asks its user for the missing one, and the call then succeeds', async () => {
    const setting = await serveProtected()
    setting.as.grants = ['signalbox:read']
    const wallet = new Wallet()
    const { client, transport } = await loginFirst(setting, wallet)
    expect(wallet.held?.scope).toBe('signalbox:read')
    await expect(client.callTool(SEND)).rejects.toBeInstanceOf(UnauthorizedError)
    expect(setting.senders).toEqual([])
    expect(wallet.visits.at(-1)!.searchParams.get('scope')?.split(' ')).toEqual(
      expect.arrayContaining(['signalbox:read', 'signalbox:write']),
    )
    setting.as.grants = ['signalbox:read', 'signalbox:write']
    await login(wallet, transport)
    expect(wallet.held?.scope?.split(' ')).toEqual(expect.arrayContaining(['signalbox:read', 'signalbox:write']))
    expect(await client.callTool(SEND)).toMatchObject({ isError: false })
    expect(await client.callTool({ name: 'channel_list', arguments: {} })).toMatchObject({ isError: false })
    expect(setting.senders).toEqual(['alice'])
  })

  test('S11 - a client whose user grants no scope is asked for all of them when it connects', async () => {
    const setting = await serveProtected()
    setting.as.grants = []
    const wallet = new Wallet()
    await expect(loginFirst(setting, wallet)).rejects.toBeInstanceOf(UnauthorizedError)
    expect(wallet.visits).toHaveLength(2)
    expect(wallet.visits[1]!.searchParams.get('scope')).toContain(SCOPE)
  })

  test('S11 - a denial of the policy sends no user to the authorization server', async () => {
    const setting = await serveProtected(governed({ clients: 'alice', channels: 'mine.*' }))
    const wallet = new Wallet()
    const { client } = await loginFirst(setting, wallet)
    expect(await client.callTool(SEND)).toMatchObject({ isError: true })
    expect(wallet.visits).toHaveLength(1)
  })

  const past = Math.floor(Date.now() / 1000) - 60
  describe.each([
    ['an expired token', (resource: string) => ({ aud: resource, exp: past })],
    ['a token for another server', () => ({ aud: 'https://other.example.com/mcp' })],
    ['a token without audience', () => ({})],
    ['a token of another issuer', (resource: string) => ({ aud: resource, iss: 'https://evil.example.com' })],
  ])('%s', (_name, claims) => {
    test('S10 - the client refreshes it silently', async () => {
      const setting = await serveProtected()
      const wallet = new Wallet()
      await loginFirst(setting, wallet)
      wallet.held = {
        ...wallet.held!,
        access_token: await setting.as.sign({ ...claims(setting.resource), scope: SCOPE }),
      }
      const { client } = await connect(setting, wallet)
      expect(await client.callTool(SEND)).toMatchObject({ isError: false })
      expect(setting.as.refreshes()).toBe(1)
      expect(wallet.visits).toHaveLength(1)
    })

    test('S10 - without a refresh token the user is asked again', async () => {
      const setting = await serveProtected()
      const wallet = new Wallet()
      await loginFirst(setting, wallet)
      const { refresh_token: _dropped, ...held } = wallet.held!
      wallet.held = { ...held, access_token: await setting.as.sign({ ...claims(setting.resource), scope: SCOPE }) }
      await expect(connect(setting, wallet)).rejects.toBeInstanceOf(UnauthorizedError)
      expect(setting.as.refreshes()).toBe(0)
      expect(wallet.visits).toHaveLength(2)
    })
  })
})
