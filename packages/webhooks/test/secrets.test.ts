import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { testFolder } from '@signalbox/testkit/test-folder'
import { until } from '@signalbox/testkit/until'
import { expect, test } from 'vitest'

import { openKeyFile, openWebhooks } from '../src/index.ts'
import { isSignedWith, openReceiver } from '@signalbox/testkit/webhook-receiver'
import { openBench, testOptions, toOrders } from './webhook-bench.ts'

test('secrets - the key file is created once, and only its owner may read it', async () => {
  const path = join(testFolder(), 'webhooks.key')
  const key = await openKeyFile(path)
  expect(key).toHaveLength(32)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await openKeyFile(path)).toEqual(key)
  await writeFile(path, 'short')
  await expect(openKeyFile(path)).rejects.toThrow('a key has exactly 32')
  expect(await readFile(path, 'utf8')).toBe('short')
})

test('secrets - the store and the answers contain no secret', async () => {
  const { webhooks, system } = await openBench()
  const receiver = await openReceiver()
  const { subscription, secret = '' } = await webhooks.create(toOrders(receiver.url))
  const entries = await system.eventsStore.read('_AGENTS_.webhooks', { maxMessages: 100 })
  const stored = entries.map(({ body }) => new TextDecoder().decode(body)).join('\n')
  expect(stored).not.toContain(secret.slice('whsec_'.length))
  expect(JSON.stringify([await webhooks.get(subscription.id), webhooks.list()])).not.toContain('whsec_')
})

test('secrets - another key than the one of the store ends the start', async () => {
  const { system } = await openBench()
  await expect(openWebhooks(system, testOptions({ key: new Uint8Array(32) }))).rejects.toThrow('another key')
})

test('secrets - after a rotation, deliveries have signatures of both secrets', async () => {
  const { webhooks, publish } = await openBench()
  const receiver = await openReceiver()
  const before = `whsec_${Buffer.from(new Uint8Array(24).fill(1)).toString('base64')}`
  const { subscription, secret } = await webhooks.create(toOrders(receiver.url, { secret: before }))
  expect(secret).toBeUndefined()
  const after = await webhooks.rotateSecret(subscription.id, 'alice')
  await publish('orders', 'one')
  await until(() => receiver.received.length === 1)
  const [one] = receiver.received
  expect(one && isSignedWith(before, one) && isSignedWith(after, one)).toBe(true)
})

test('secrets - a test message is signed, and its answer is reported', async () => {
  const { webhooks } = await openBench()
  const receiver = await openReceiver()
  const { subscription, secret = '' } = await webhooks.create(toOrders(receiver.url))
  expect(await webhooks.test(subscription.id)).toEqual({ status: 204 })
  const [one] = receiver.received
  expect(one && isSignedWith(secret, one)).toBe(true)
})

test.each(['secret', 'whsec_', 'whsec_!!!!', `whsec_${'A'.repeat(20)}`])('secrets - %s is refused', async (secret) => {
  const { webhooks } = await openBench()
  await expect(webhooks.create(toOrders('https://example.com/', { secret }))).rejects.toMatchObject({
    code: 'SUBSCRIPTION_INVALID',
  })
})

test('options - an option that is not allowed is refused', async () => {
  const { system } = await openBench()
  await expect(openWebhooks(system, testOptions({ maxInFlight: 0 }))).rejects.toThrow('maxInFlight: 0')
  // @ts-expect-error -- the key is missing
  await expect(openWebhooks(system, {})).rejects.toThrow('key: it is missing')
})
