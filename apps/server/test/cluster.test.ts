import { encodeText } from '@signalbox/broker-core'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { freePort } from '@signalbox/testkit/free-port'

import type { PartialConfig } from '../src/config/load.ts'
import { serve } from './support/server.ts'

const PATIENT = { timeout: 20_000 }
const CALLER = { clientId: 'somebody' }

async function startNats(): Promise<NatsServer> {
  const nats = await NatsServer.start()
  onTestFinished(() => nats[Symbol.asyncDispose]())
  return nats
}

function asked(port: number, path: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`)
}

async function ready(url: string): Promise<unknown> {
  const response = await fetch(`${url}/ready`)
  const { engine, checks } = (await response.json()) as { engine: string; checks: { name: string; ok: boolean }[] }
  return [response.status, engine, checks.find(({ name }) => name === 'connection')?.ok]
}

describe.skipIf(NATS_SERVER === undefined)('ENGINE=nats', () => {
  test('cluster - two servers on one NATS are one broker', async () => {
    const nats = await startNats()
    const settings: PartialConfig = { engine: 'nats', nats: { servers: [nats.url] } }
    const [one, two] = [await serve(settings), await serve(settings)]
    expect(await ready(one.http.url)).toEqual([200, 'nats', true])
    await one.broker.as(CALLER).queues.send('q', { body: encodeText('from one') })
    const [delivery] = await two.broker.as(CALLER).queues.receive('q', { waitMs: 10_000 })
    expect(delivery && new TextDecoder().decode(delivery.message.body)).toBe('from one')
    await one.close()
    expect(await two.broker.as(CALLER).queues.ack([delivery?.receipt ?? ''])).toEqual({ settled: 1, lost: [] })
  })

  test('CL-5, CL-8 - a server is not ready while NATS is away, and is again when it is back', async () => {
    const nats = await startNats()
    const server = await serve({ engine: 'nats', nats: { servers: [nats.url] } })
    await nats.kill()
    await vi.waitFor(async () => expect(await ready(server.http.url)).toEqual([503, 'nats', false]), PATIENT)
    await nats.start()
    await vi.waitFor(async () => expect(await ready(server.http.url)).toEqual([200, 'nats', true]), PATIENT)
  })

  test('PROBE-1, PROBE-2, PROBE-3 - a node that never reached NATS is alive, neither healthy nor ready, on both listeners', async () => {
    const nats = await startNats()
    await nats.kill()
    const [http, api] = [await freePort(), await freePort()]
    const server = serve({ engine: 'nats', nats: { servers: [nats.url] }, http: { port: http }, api: { port: api } })
    for (const port of [http, api]) {
      // The listeners open one after the other, before the first attempt to reach NATS has failed.
      await vi.waitFor(async () => {
        const state = await asked(port, '/ready')
        expect([state.status, await state.json()]).toEqual([
          503,
          expect.objectContaining({
            ready: false,
            healthy: false,
            checks: [
              { name: 'server', ok: false, detail: 'starting' },
              { name: 'engine', ok: false, detail: expect.stringContaining('cannot be reached') },
            ],
          }),
        ])
      }, PATIENT)
      expect(await (await asked(port, '/ping')).text()).toBe('pong')
      const health = await asked(port, '/health')
      expect([health.status, await health.text()]).toEqual([500, 'not healthy'])
    }
    for (const path of ['/mcp', '/agents', '/nope']) {
      const early = await asked(http, path)
      expect([path, early.status, early.headers.get('retry-after')]).toEqual([path, 503, '1'])
    }

    await nats.start()
    expect((await server).http.port).toBe(http)
    for (const port of [http, api]) {
      expect([(await asked(port, '/health')).status, (await asked(port, '/ready')).status]).toEqual([200, 200])
    }
    expect((await asked(http, '/agents')).status).toBe(200)
    expect((await asked(http, '/nope')).status).toBe(404)
  })

  test('cluster - a server that NATS refuses does not start, and says why without the password', async () => {
    const nats = await NatsServer.start({ config: 'authorization { user: "box", password: "right" }' })
    onTestFinished(() => nats[Symbol.asyncDispose]())
    const servers = [nats.url.replace('nats://', 'nats://box:secret@')]
    const refused = serve({ engine: 'nats', nats: { servers } })
    await expect(refused).rejects.toMatchObject({
      code: 'START_FAILED',
      problems: [expect.stringMatching(/^nats: NATS refused the connection to nats:\/\/127/)],
    })
    await expect(refused).rejects.not.toThrow(/secret/)
  })
})
