import { expect, onTestFinished, test, vi } from 'vitest'

import { CLIENT, Folder, queued } from './support/store.ts'

const LEASE_MS = 600_000

test.each([
  ['granted', (_extend: () => Promise<unknown>) => Promise.resolve()],
  ['extended', (extend: () => Promise<unknown>) => extend()],
])('leases - a receipt settles until the deadline of its lease, and not after: %s', async (_name, prepare) => {
  await using folder = await Folder.make()
  await using engine = await folder.open()
  const realNow = performance.now.bind(performance)
  let offsetMs = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => realNow() + offsetMs)
  onTestFinished(() => clock.mockRestore())
  for (const text of ['in time', 'late']) await engine.queues.send('q', queued(text))
  const leased = await engine.queues.receive('q', { maxMessages: 2, waitMs: 0, leaseMs: LEASE_MS, clientId: CLIENT })
  const [inTime = '', late = ''] = leased.map(({ receipt }) => receipt)
  await prepare(() => engine.queues.extend([inTime, late], CLIENT, LEASE_MS))
  offsetMs = LEASE_MS - 60_000
  expect(await engine.queues.ack([inTime], CLIENT)).toEqual({ settled: 1, lost: [] })
  offsetMs = LEASE_MS
  expect(await engine.queues.ack([late], CLIENT)).toEqual({ settled: 0, lost: [late] })
})
