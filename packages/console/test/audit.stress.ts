import { text } from 'node:stream/consumers'

import { describe, expect, test, vi } from 'vitest'

import { beforeScreens, hasBrowser, openPage } from './browser.ts'
import { screenProblems } from './check-screen.ts'
import { Server } from './server.ts'

const QUEUES = 230

let server: Server
beforeScreens(async (held) => {
  server = held.use(await Server.start())
  const numbers = Array.from({ length: QUEUES }, (_, number) => number)
  await Promise.all(numbers.map((number) => server.act('create_channel', { type: 'queues', channel: `q${number}` })))
  await server.act('purge_queue', { channel: 'q7' })
  // The server stores entries after its answers, and the page reads the log once.
  await vi.waitUntil(async () => (await storedEntries()) === QUEUES + 1, { timeout: 120_000 })
})

/** Returns the number of entries in the log. */
async function storedEntries(): Promise<number> {
  const response = await fetch(`${server.api}/api/audit?limit=1000`)
  const { data } = (await response.json()) as { readonly data: { readonly items: readonly unknown[] } }
  return data.items.length
}

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - older entries are read as the operator scrolls', async () => {
    const { page } = await openPage(`${server.console}#/audit`)
    await page.getByRole('row', { name: /purge_queue/ }).waitFor()
    await page.evaluate('scrollTo(0, document.body.scrollHeight)')
    await page.getByText(`${QUEUES + 1} entries, to the end of the log`).waitFor()
    // Only the visible rows are in the page.
    expect(await page.getByRole('row').count()).toBeLessThan(QUEUES)
  })

  test('console - filters are in the address, and a reload keeps them', async () => {
    const { page } = await openPage(`${server.console}#/audit`)
    await page.getByLabel('Action').fill('purge_queue')
    await page.keyboard.press('Enter')
    await page.getByText('1 entries, to the end of the log').waitFor()
    await expect.poll(() => new URL(page.url()).hash).toBe('#/audit?action=purge_queue')
    await page.reload()
    await page.getByText('1 entries, to the end of the log').waitFor()
    await page.getByRole('row', { name: /purge_queue/ }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Audit entry' }).getByText('"channel": "q7"').waitFor()
    await page.keyboard.press('Escape')
    await page.getByLabel('Outcome').selectOption('denied')
    await page.getByText('No entry matches the filters.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await page
      .getByRole('row', { name: /create_channel/ })
      .first()
      .waitFor()
  })

  test('console - the entries that match are saved as lines of JSON', async () => {
    const { page } = await openPage(`${server.console}#/audit?action=create_channel`)
    await page
      .getByRole('row', { name: /create_channel/ })
      .first()
      .waitFor()
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export JSON lines' }).click()
    const file = await saved
    expect(file.suggestedFilename()).toBe('audit.jsonl')
    const lines = (await text(await file.createReadStream())).trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).action)).toEqual(Array.from({ length: QUEUES }, () => 'create_channel'))
    await page.getByText(`${QUEUES} entries saved.`).waitFor()
  })

  test('console - the audit log is accessible, wide and narrow', async () => {
    expect(await screenProblems(`${server.console}#/audit?action=purge_queue`, 'purge_queue')).toEqual([])
  })
})
