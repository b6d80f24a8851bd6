import { setTimeout as pause } from 'node:timers/promises'

import { until } from '@signalbox/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { connect } from '../src/index.ts'
import { TestServer } from './server.ts'

/** The time for which the server is killed again and again. */
const DURATION_MS = Number(process.env['STRESS_MS'] ?? 120_000)
const KILL_EVERY_MS = 5_000

let server: TestServer

beforeAll(async () => {
  server = await TestServer.start()
})

afterAll(() => server[Symbol.asyncDispose]())

/** The handlings of one message. */
class Handlings {
  done = 0
  /** Handlings that run and whose lease the client still believes in. */
  readonly believing = new Set<AbortSignal>()
}

test('restarts - a server that is killed every 5 s loses nothing, and no message is handled twice at a time', async () => {
  await using sb = connect(server.url, { onError: () => {} })
  const jobs = sb.queue<number>('jobs')
  const handlings = new Map<number, Handlings>()
  let overlaps = 0
  let lost = 0
  const pool = jobs.work({ concurrency: 8, lease: '2s', backoff: () => 100 }, async (n, { signal }) => {
    const all = handlings.get(n) ?? new Handlings()
    handlings.set(n, all)
    if ([...all.believing].some(({ aborted }) => !aborted)) overlaps++
    all.believing.add(signal)
    // Every tenth message takes longer than its lease, which the pool renews.
    await pause(n % 10 === 0 ? 3_000 : 20, undefined, { signal }).catch(() => {})
    all.believing.delete(signal)
    if (signal.aborted) {
      lost++
      throw new Error('the lease is lost')
    }
    all.done++
  })

  let checkpoint: number | undefined
  const projected: number[] = []
  const sales = sb.store<number>('sales')
  const save = (sequence: number): void => void (checkpoint = sequence)
  await sales.project({ load: () => checkpoint, save }, ({ data }) => projected.push(data)).ready
  await sb.answer<number>('queries', 'double', (n) => n * 2).ready

  const end = performance.now() + DURATION_MS
  let kills = 0
  const killing = (async () => {
    while (performance.now() < end) {
      await pause(KILL_EVERY_MS)
      await server.stop('SIGKILL')
      await server.start()
      kills++
    }
  })()
  let sent = 0
  let answered = 0
  let unanswered = 0
  while (performance.now() < end) {
    await jobs.send(sent)
    await sales.append(sent)
    // A query under way at a kill has an error, which says so.
    await sb.query<number>('double', sent, { timeout: '5s' }).then(
      (answer) => {
        expect(answer).toBe(sent * 2)
        answered++
      },
      () => unanswered++,
    )
    sent++
    await pause(20)
  }
  await killing
  await until(() => projected.length >= sent)
  await until(() => handlings.size === sent && [...handlings.values()].every(({ done }) => done > 0))
  const drainStarted = performance.now()
  await pool.drain('25s')
  const drainMs = performance.now() - drainStarted

  const repeated = [...handlings.values()].filter(({ done }) => done > 1).length
  console.log(
    `${kills} kills in ${DURATION_MS / 1000} s: ${sent} messages, 0 lost, ${repeated} handled again, ${lost} stopped without their lease; ` +
      `${projected.length} events in order; ${answered} answers, ${unanswered} errors; drained in ${Math.round(drainMs)} ms`,
  )
  expect(projected).toEqual(Array.from({ length: sent }, (_, n) => n))
  expect(overlaps).toBe(0)
  expect(drainMs).toBeLessThan(25_000)
  expect(answered).toBeGreaterThan(unanswered)
})
