import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { encodeText } from '@signalbox/broker-core'
import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import type { HealthState } from '../src/health/health.ts'
import { command } from './support/commands.ts'
import { rpc } from './support/mcp.ts'
import { serve } from './support/server.ts'

const PAGE = 8192
const MESSAGES = 40

const DONE = { result: { isError: false } }
const FAILED = { result: { isError: true } }

function recover(...args: readonly string[]) {
  return command(['recover', ...args])
}

/** A store with the queues `bad` and `good`, one page of `bad` overwritten. */
async function damagedStore(): Promise<string> {
  const path = testFolder()
  const server = await serve({ store: { path } })
  const { queues } = server.broker.as({ clientId: 'shop' })
  for (const queue of ['bad', 'good']) {
    const bodies = Array.from({ length: MESSAGES }, (_, i) => encodeText(`${queue} ${i} ${'x'.repeat(2_000)}`))
    await queues.sendBatch(
      queue,
      bodies.map((body) => ({ body })),
    )
  }
  await server.close()
  const file = join(path, 'signalbox.db')
  const bytes = readFileSync(file)
  const page = Math.floor(bytes.indexOf('bad 20 ') / PAGE) * PAGE
  writeFileSync(file, bytes.fill(0xab, page, page + PAGE))
  return path
}

test('damaged store - probes fail and name the queue, sends to it are refused, and readable data is recovered', async () => {
  const path = await damagedStore()
  const server = await serve({ store: { path } })
  const { http, api } = server
  const call = (name: string, args: object) => rpc(http.url, 'tools/call', { name, arguments: args })
  await call('queue_receive', { channel: 'bad', max_messages: 100 })
  expect(await call('queue_receive', { channel: 'bad', max_messages: 100 })).toMatchObject(FAILED)
  expect(await call('queue_send', { channel: 'bad', body: 'lost' })).toMatchObject(FAILED)
  expect(await call('queue_send', { channel: 'good', body: 'kept' })).toMatchObject(DONE)
  for (const { url } of [http, api]) {
    const health = await fetch(`${url}/health`)
    expect([health.status, await health.text()]).toEqual([500, 'not healthy'])
    const ready = await fetch(`${url}/ready`)
    expect(ready.status).toBe(503)
    const { checks } = (await ready.json()) as HealthState
    expect(checks.find(({ name }) => name === 'store')).toMatchObject({
      ok: false,
      detail: 'damaged: queues "bad"',
    })
  }
  await server.close()

  const copy = join(testFolder(), 'copy')
  const { code, stdout, stderr } = await recover(path, copy)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const [, lost] =
    /^\S+signalbox\.db: \d+ channels, \d+ messages, \d+ bytes\nleft out: queues "bad": (\d+) of 40 messages\n$/.exec(
      stdout,
    ) ?? []
  const recovered = await serve({ store: { path: copy } })
  const { queues } = recovered.broker.as({ clientId: 'shop' })
  expect(await queues.receive('good', { maxMessages: 100 })).toHaveLength(MESSAGES + 1)
  expect(await queues.receive('bad', { maxMessages: 100 })).toHaveLength(MESSAGES - Number(lost))
  expect(Number(lost)).toBeLessThan(10)
})

test('recover - a failure is one line, with exit code 1 or 2', async () => {
  const folder = testFolder()
  const usage = 'signalbox: recover: allowed is signalbox recover FOLDER NEW_FOLDER\n'
  expect(await recover(folder)).toEqual({ code: 2, stdout: '', stderr: usage })
  const { code, stdout, stderr } = await recover(join(folder, 'nobody'), join(folder, 'new'))
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^signalbox: recover: cannot read the store: [^\n]*signalbox\.db: [^\n]*\n$/)
})
