import type { CDPSession } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { closeBrowser, expectQuiet, hasBrowser, openPage } from './browser.ts'
import { Server } from './server.ts'

const PER_SECOND = 1_000
const SENDERS = 20
/** The time that is measured, after a few seconds in which the page fills its list. */
const WARM_UP_MS = 4_000
const MEASURED_MS = Math.min(60_000, Number(process.env['STRESS_MS'] ?? 12_000))

const MAX_FRAME_MS = 50
const MAX_GROWTH_MIB = 24
/** More messages than the buffers of the server and the system take. */
const BURST = 4_000

let server: Server
beforeAll(async () => {
  if (hasBrowser) server = await Server.start()
}, 60_000)
afterAll(async () => {
  await closeBrowser()
  await server?.[Symbol.asyncDispose]()
})

/** Publishes at a fixed pace; returns the number of events. */
async function publish(ms: number): Promise<number> {
  const intervalMs = (SENDERS / PER_SECOND) * 1_000
  const begin = performance.now()
  let sent = 0
  const send = async (): Promise<void> => {
    for (let n = 0; performance.now() - begin < ms; n++) {
      const wait = begin + n * intervalMs - performance.now()
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
      await server.tool('events_publish', { channel: `prices.${n % 10}`, body: JSON.stringify({ n, price: n * 1.5 }) })
      sent++
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, send))
  return sent
}

/** Returns the bytes that the scripts of the page hold after a collection, in MiB. */
async function heapOf(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  return usedSize / 2 ** 20
}

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test(
    'console - the live tail follows 1,000 messages a second: short frames, bounded memory, dropped messages counted',
    { timeout: 180_000 },
    async () => {
      const watched = await openPage(`${server.console}#/live`)
      const { page, context } = watched
      await page.locator('.badge', { hasText: 'Live' }).waitFor()
      const session = await context.newCDPSession(page)
      const warmedUp = publish(WARM_UP_MS)
      await page.getByRole('table', { name: 'Messages' }).waitFor()
      await warmedUp
      const before = await heapOf(session)
      const frames = page.evaluate(
        (ms) =>
          new Promise<readonly number[]>((resolve) => {
            const intervals: number[] = []
            const begin = performance.now()
            let last = begin
            const draw = (now: number): void => {
              intervals.push(now - last)
              last = now
              if (now - begin < ms) requestAnimationFrame(draw)
              else resolve(intervals.slice(1).toSorted((a, b) => a - b))
            }
            requestAnimationFrame(draw)
          }),
        MEASURED_MS,
      )
      const begin = performance.now()
      const sent = await publish(MEASURED_MS)
      const rate = sent / ((performance.now() - begin) / 1_000)
      const intervals = await frames
      const at = (share: number): number => intervals[Math.floor(intervals.length * share)] ?? Infinity
      const growth = (await heapOf(session)) - before
      const elements = await page.evaluate(() => document.querySelectorAll('*').length)
      const dropped = await page.getByText('not shown: messages came faster').allTextContents()
      console.log(
        `live tail: ${rate.toFixed(0)} messages/s, frames p50 ${at(0.5).toFixed(1)} ms, p95 ${at(0.95).toFixed(1)} ms, ` +
          `longest ${at(1 - 1 / intervals.length).toFixed(0)} ms; ` +
          `memory ${before.toFixed(1)} MiB, ${growth.toFixed(1)} MiB more after ${MEASURED_MS / 1_000} s; ` +
          `${elements} elements; ${dropped[0] ?? 'nothing dropped'}`,
      )
      expect(at(0.95)).toBeLessThan(MAX_FRAME_MS)
      expect(growth).toBeLessThan(MAX_GROWTH_MIB)
      expect(elements).toBeLessThan(3_000)
      expect(await page.getByRole('table', { name: 'Messages' }).getAttribute('aria-rowcount')).toBe('2001')
      expectQuiet(watched)
    },
  )

  test('console - the live tail says how many messages a slow page did not get', async () => {
    const watched = await openPage(`${server.console}#/live?channel=large`)
    const { page } = watched
    await page.locator('.badge', { hasText: 'Live' }).waitFor()
    const blocked = page.evaluate(() => {
      const end = performance.now() + 4_000
      while (performance.now() < end);
    })
    const body = 'x'.repeat(4_096)
    const burst = async (): Promise<void> => {
      for (let n = 0; n < BURST / SENDERS; n++) await server.tool('events_publish', { channel: 'large', body })
    }
    await Promise.all(Array.from({ length: SENDERS }, burst))
    await blocked
    const note = page.getByText('not shown: messages came faster than this page reads.')
    await note.waitFor()
    const rows = Number(await page.getByRole('table', { name: 'Messages' }).getAttribute('aria-rowcount')) - 1
    const dropped = Number((await note.textContent())?.replaceAll(/\D/g, ''))
    console.log(`live tail: ${dropped} of ${BURST} messages dropped while the page was blocked, ${rows} rows`)
    expect(dropped).toBeGreaterThan(0)
    expect(dropped + rows).toBeLessThanOrEqual(BURST)
    expectQuiet(watched)
  })
})
