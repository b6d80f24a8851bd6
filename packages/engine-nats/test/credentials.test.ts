import { openNatsEngine } from '@signalbox/engine-nats'
import type { NatsEngineOptions } from '@signalbox/engine-nats'
import { execFileSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { Authority, HAS_OPENSSL } from './support/certificates.ts'
import { queued, RECEIVE, text } from './support/messages.ts'
import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { openNode, startServer } from './support/nodes.ts'
import { makeOperator } from './support/operator.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox-credentials-'))
})

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

async function assertWorks(node: Awaited<ReturnType<typeof openNode>>): Promise<void> {
  await node.queues.send('q', queued('x'))
  const [delivery] = await node.queues.receive('q', RECEIVE)
  expect(delivery && text(delivery.message)).toBe('x')
}

async function codeOf(options: NatsEngineOptions): Promise<unknown> {
  try {
    const engine = await openNatsEngine(options)
    await engine.close()
    return 'opened'
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error
  }
}

test.skipIf(process.platform === 'win32')(
  'CL-9 - pipes and large files are refused before anything connects',
  async () => {
    const [pipe, large] = [join(folder, 'pipe'), join(folder, 'large')]
    execFileSync('mkfifo', [pipe])
    await writeFile(large, Buffer.alloc(5_000_000, 'x'))
    const servers = ['nats://127.0.0.1:1']
    for (const file of [pipe, large]) {
      expect(await codeOf({ servers, credsFile: file })).toBe('OPTION_INVALID')
      expect(await codeOf({ servers, tls: { caFile: file } })).toBe('OPTION_INVALID')
    }
  },
)

describe.skipIf(NATS_SERVER === undefined)('credentials', () => {
  test('CL-9 - connects with the user and password of the address', async () => {
    const server = await startServer({ config: 'authorization { user: "box", password: "pass@word:1" }' })
    const address = (user: string) => server.url.replace('nats://', `nats://${user}@`)
    await assertWorks(await openNode(server, { servers: [address('box:pass%40word%3A1')] }))
    expect(await codeOf({ servers: [address('box:wrong')] })).toBe('SERVERS_REFUSED')
    expect(await codeOf({ servers: [server.url] })).toBe('SERVERS_REFUSED')
    await expect(openNatsEngine({ servers: [address('box:secret')] })).rejects.not.toThrow(/secret/)
  })

  test('CL-9 - connects with a credentials file', async () => {
    const operator = makeOperator()
    const server = await startServer({ config: operator.config })
    const [credsFile, foreign] = [join(folder, 'user.creds'), join(folder, 'foreign.creds')]
    await writeFile(credsFile, operator.creds)
    await writeFile(foreign, operator.foreignCreds)
    await assertWorks(await openNode(server, { credsFile }))
    expect(await codeOf({ servers: [server.url], credsFile: foreign })).toBe('SERVERS_REFUSED')
    expect(await codeOf({ servers: [server.url], credsFile: join(folder, 'missing') })).toBe('OPTION_INVALID')
  })

  test.skipIf(!HAS_OPENSSL)('CL-9 - connects over TLS with a private authority and a client certificate', async () => {
    const [authority, stranger] = [new Authority(folder, 'authority'), new Authority(folder, 'stranger')]
    const own = await authority.issue('server')
    const client = await authority.issue('client')
    const files = `cert_file: "${own.certFile}", key_file: "${own.keyFile}", ca_file: "${authority.caFile}"`
    const server = await startServer({ config: `tls { ${files}, verify: true, timeout: 5 }`, scheme: 'tls' })
    const servers = [server.url]
    await assertWorks(await openNode(server, { tls: { caFile: authority.caFile, ...client } }))
    expect(await codeOf({ servers, tls: { caFile: stranger.caFile, ...client } })).toBe('SERVERS_REFUSED')
    expect(await codeOf({ servers, tls: { caFile: join(folder, 'missing') } })).toBe('OPTION_INVALID')
    const alone = { caFile: authority.caFile, certFile: client.certFile }
    expect(await codeOf({ servers, tls: alone })).toBe('OPTION_INVALID')
  })

  test('CL-9 - a node starts if one of its servers can be reached', async () => {
    const server = await startServer()
    const node = await openNode(server, { servers: ['nats://127.0.0.1:1', server.url] })
    await assertWorks(node)
    expect((await node.health()).ok).toBe(true)
  })

  test('options - an invalid option is refused by name, and no password is shown', async () => {
    const servers = ['nats://127.0.0.1:4222']
    expect(await codeOf({ servers: [] })).toBe('OPTION_INVALID')
    expect(await codeOf({ servers: ['nats://user:secret@ho st'] })).toBe('OPTION_INVALID')
    await expect(openNatsEngine({ servers: ['nats://user:secret@ho st'] })).rejects.not.toThrow(/secret/)
    await expect(openNatsEngine({ servers, replicas: 2 })).rejects.toThrow('invalid option replicas: 2; allowed is')
    await expect(openNatsEngine({ servers, prefix: 'a.b' })).rejects.toThrow('invalid option prefix')
    await expect(openNatsEngine({ servers, maxChannels: -1 })).rejects.toThrow('invalid option maxChannels')
  })
})
