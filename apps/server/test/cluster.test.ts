import { encodeText } from '@signalbox/broker-core'
import { NATS_SERVER, NatsServer } from '@signalbox/engine-nats/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'

import type { PartialConfig } from '../src/config/load.ts'
import { serve } from './support/server.ts'

const PATIENT = { timeout: 20_000 }
const CALLER = { clientId: 'somebody' }

async function startNats(): Promise<NatsServer> {
  const nats = await NatsServer.start()
  onTestFinished(() => nats[Symbol.asyncDispose]())
  return nats
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
