import { Buffer } from 'node:buffer'

import { AdmissionControl } from '@signalbox/http-kit'
import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import { openCe } from './ce-server.ts'
import type { CeServer } from './ce-server.ts'
import type { SseClient, SseMessage } from '@signalbox/testkit/sse-client'

const BODY = Buffer.from(JSON.stringify('x'.repeat(1_000_000)))

async function lastOf(stream: SseClient): Promise<SseMessage | undefined> {
  stream.resume()
  await stream.ended
  return stream.waiting.at(-1)
}

const SENDS: Readonly<Record<string, (server: CeServer) => Promise<unknown>>> = {
  'events?channel=c': ({ user }) => user.events.publish('c', { body: BODY }),
  'events-store?channel=c': ({ user }) => user.eventsStore.publish('c', { body: BODY }),
  'events-store?channel=c&group=g': ({ user }) => user.eventsStore.publish('c', { body: BODY }),
  'commands?channel=c': ({ user }) =>
    user.commands.send('c', { body: BODY }, { timeoutMs: 10 }).catch((error: unknown) => error),
}

test('CE-17 - slow consumers: a subscriber that takes nothing gets an error after its time, and its stream ends', async () => {
  const server = await openCe({ slowConsumerMs: 200 })
  const streams = await Promise.all(Object.keys(SENDS).map((route) => server.subscribe(route)))
  for (const stream of streams) stream.pause()
  await until(async () => {
    await Promise.all(Object.values(SENDS).map((send) => send(server)))
    return server.connector.openStreams() === 0
  })
  for (const stream of streams) {
    const last = await lastOf(stream)
    expect(last?.event).toBe('error')
    expect(JSON.parse(last?.data ?? '')).toMatchObject({
      is_error: true,
      message: expect.stringMatching(/^slow consumer/),
      data: { code: 'SLOW_CONSUMER' },
    })
  }
})

test('CE-17 - slow consumers: the waiting data of one is bounded, and counts against its caller until it is released', async () => {
  const admission = new AdmissionControl()
  const server = await openCe({ frontDoor: { admission } })
  const stream = await server.subscribe('events?channel=c')
  stream.pause()
  const body = Buffer.from(JSON.stringify('x'.repeat(100_000)))
  let most = 0
  for (let i = 0; i < 200; i++) {
    await server.user.events.publish('c', { body })
    if (i % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
    most = Math.max(most, admission.use.unreadBytes)
  }
  expect(most).toBeGreaterThan(500_000)
  expect(most).toBeLessThan(1_200_000)
  stream.close()
  await until(() => admission.use.unreadBytes === 0)
})

test('CE-17 - slow consumers: a caller whose streams hold too much loses one', async () => {
  const admission = new AdmissionControl({ limits: { process: { unreadBytes: 1_000_000 } } })
  const server = await openCe({ frontDoor: { admission } })
  const stream = await server.subscribe('events?channel=c')
  stream.pause()
  while (server.connector.openStreams() > 0) {
    await server.user.events.publish('c', { body: BODY })
    await new Promise((resolve) => setImmediate(resolve))
  }
  await until(() => admission.use.unreadBytes === 0)
  expect((await lastOf(stream))?.event).not.toBe('error')
})
