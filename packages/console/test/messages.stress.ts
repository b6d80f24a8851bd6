import { describe, expect, test } from 'vitest'

import type { OpenOptions, Watched } from './browser.ts'
import { beforeScreens, expectQuiet, hasBrowser, openPage, violationsOf } from './browser.ts'
import { Server } from './server.ts'
import { fill } from './traffic.ts'

let server: Server
beforeScreens(async (held) => {
  server = held.use(await Server.start({ QUEUE_MAX_MESSAGES: '10000' }))
  await fill(server)
})

/** Opens a place of the console. */
async function open(place: string, options: OpenOptions = {}): Promise<Watched> {
  return openPage(`${server.console}#/${place}`, options)
}

/** Publishes numbered messages to an events store. */
async function publish(channel: string, count: number): Promise<void> {
  for (let number = 0; number < count; number++)
    await server.tool('events_store_publish', { channel, body: String(number) })
}

const EVIL = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>\u202Egnp.exe'

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - the overview shows figures, plots, the deepest queues and the node', async () => {
    const watched = await open('overview')
    const { page } = watched
    await page.getByRole('table', { name: 'Deepest queues' }).getByRole('link', { name: 'orders.south' }).waitFor()
    await page.getByRole('table', { name: 'Busiest channels' }).getByRole('link', { name: 'ledger' }).waitFor()
    await page.getByRole('figure').first().locator('canvas').waitFor()
    expect(await page.getByRole('figure').count()).toBe(6)
    await page.getByRole('button', { name: '1 min' }).click()
    await page.waitForURL(/range=minute/)
    expectQuiet(watched)
  })

  test('console - channels are searched, sorted and filtered, and the URL keeps all of it', async () => {
    const watched = await open('channels')
    const { page } = watched
    const names = () => page.getByRole('table', { name: 'Channels' }).locator('tbody td:first-child').allTextContents()
    await page.keyboard.press('/')
    await page.keyboard.type('orders')
    await expect.poll(names).toEqual(['orders.north', 'orders.south', 'orders.west'])
    await page.getByRole('button', { name: 'Depth' }).click()
    await expect.poll(names).toEqual(['orders.south', 'orders.west', 'orders.north'])
    await page.waitForURL(/search=orders.*sort=depth/)
    await page.reload()
    await expect.poll(names).toEqual(['orders.south', 'orders.west', 'orders.north'])
    await page.getByLabel('Type').selectOption('Events')
    await page.getByText('No channel matches the filters.').waitFor()
    expectQuiet(watched)
  })

  test('console - the list of channels has the rates of those with traffic', async () => {
    const watched = await open('channels?search=rates')
    const { page } = watched
    const row = page.getByRole('row', { name: /rates.one/ })
    const traffic = async (): Promise<string> => {
      await server.tool('events_publish', { channel: 'rates.one', body: '1' })
      return (await row.count()) === 0 ? '' : row.innerText()
    }
    await expect.poll(traffic).toMatch(/\t[\d.]*[1-9][\d.]*\/s\t/)
    expectQuiet(watched)
  })

  test('console - a channel has the settings that limit it, with links to them', async () => {
    const watched = await open('channels/queues/orders.south')
    const { page } = watched
    const limits = page.locator('section', { has: page.getByRole('heading', { name: 'Limits' }) })
    await limits.getByText('at most 10,000').waitFor()
    expect(await limits.getByRole('link').allTextContents()).toEqual([
      'QUEUE_MAX_MESSAGES',
      'QUEUE_MAX_BYTES',
      'MAX_BODY_BYTES',
    ])
    await limits.getByText('no limit').waitFor()
    await limits.getByRole('link', { name: 'QUEUE_MAX_MESSAGES' }).click()
    await page.getByText('environment QUEUE_MAX_MESSAGES').waitFor()
    await page.goto(`${server.console}#/channels/events_store/ledger`)
    await limits.getByText('STORE_MAX_AGE_SECONDS').waitFor()
    expectQuiet(watched)
  })

  test('console - a channel is created, purged after a dry run, and deleted with its name typed', async () => {
    const watched = await open('channels')
    const { page } = watched
    await page.getByRole('button', { name: 'Create channel' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('temporary')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('link', { name: 'temporary' }).click()
    await page.getByRole('button', { name: 'Send message' }).click()
    await page.getByLabel('Body').fill('{"a":1}')
    await page.getByLabel('Tags').fill('shop: north')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Message 1 sent.').waitFor()
    await page.getByRole('button', { name: 'Purge' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 message', { exact: true }).waitFor()
    const purge = dialog.getByRole('button', { name: 'Purge' })
    expect(await purge.isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('temporary')
    expect(await violationsOf(page)).toEqual([])
    await purge.click()
    await page.getByText('1 message removed.').waitFor()
    await page.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('textbox').fill('temporary')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Queue temporary deleted.').waitFor()
    await page.getByRole('heading', { level: 1, name: 'Channels' }).waitFor()
    expectQuiet(watched)
  })

  test('console - messages are searched, opened with the keyboard, and sent again edited', async () => {
    const watched = await open('channels/queues/orders.west')
    const { page } = watched
    const rows = page.getByRole('table', { name: 'Messages' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(13)
    await page.getByLabel('Search in messages').fill('T-11')
    await expect.poll(() => rows.count()).toBe(1)
    await rows.first().focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('"sku": "T-11"').waitFor()
    await dialog.getByRole('button', { name: 'Hex' }).click()
    await dialog.getByText('00000000  7b 22 6f').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Edit and resend' }).click()
    await dialog.getByLabel('To queue').fill('orders.corrected')
    await dialog.getByLabel('Body').fill('{"corrected":true}')
    await dialog.getByRole('button', { name: 'Resend' }).click()
    await page.getByText('Sent to orders.corrected as message 1.').waitFor()
    const { messages } = await server.act('peek_queue_messages', { channel: 'orders.corrected', max_messages: 1 })
    expect(messages).toMatchObject([{ body: '{"corrected":true}', tags: { shop: 'west' } }])
    expectQuiet(watched)
  })

  test('console - messages that newer ones push off the first page stay in the list of a store', async () => {
    await publish('busy', 150)
    const watched = await open('channels/events_store/busy')
    const { page } = watched
    const table = page.getByRole('table', { name: 'Messages' })
    const scrolled = async (): Promise<string | null> => {
      await page.evaluate('scrollTo(0, document.body.scrollHeight)')
      return table.getAttribute('aria-rowcount')
    }
    await expect.poll(scrolled).toBe(String(1 + 150))
    await publish('busy', 30)
    await page.evaluate('scrollTo(0, 0)')
    await table.locator('tbody tr').first().filter({ hasText: '180' }).waitFor()
    expect(await table.getAttribute('aria-rowcount')).toBe(String(1 + 180))
    expectQuiet(watched)
  })

  test('console - dead letters are grouped by source and reason, and redriven one, edited, and as a group', async () => {
    const watched = await open('dead-letters')
    const { page } = watched
    await page.getByRole('link', { name: 'payments.dead' }).click()
    const groups = page.getByRole('table', { name: 'Groups of dead letters' }).locator('tbody tr')
    await expect.poll(() => groups.allTextContents()).toHaveLength(2)
    await groups.filter({ hasText: 'invoices' }).click()
    const letters = page.getByRole('table', { name: 'Dead letters', exact: true }).locator('tbody tr')
    await expect.poll(() => letters.count()).toBe(4)
    await letters.first().getByRole('button', { name: 'Redrive' }).click()
    await page.getByText('was sent back to invoices').waitFor()
    await expect.poll(() => letters.count()).toBe(3)
    await letters.first().press('Enter')
    await page.getByRole('button', { name: 'Edit and redrive' }).click()
    await page.getByRole('dialog').getByLabel('Body').fill('<invoice number="2" corrected="yes"/>')
    await page.getByRole('dialog').getByRole('button', { name: 'Redrive' }).click()
    await page.getByText('The edited message was sent to invoices.').waitFor()
    await groups.filter({ hasText: 'payments' }).getByRole('button', { name: 'Redrive' }).click()
    await page.getByRole('dialog').getByText('9 messages').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await page.getByRole('dialog').getByRole('button', { name: 'Redrive' }).click()
    await page.getByRole('table', { name: 'Redrives' }).getByText('done').waitFor()
    await expect.poll(() => groups.count()).toBe(1)
    expectQuiet(watched)
  })

  test('console - the live tail shows messages as they pass, filters, and pauses', async () => {
    const watched = await open('live?channel=live.*')
    const { page } = watched
    await page.locator('.badge', { hasText: 'Live' }).waitFor()
    await server.tool('events_publish', { channel: 'live.one', body: 'shown' })
    await server.tool('events_publish', { channel: 'other', body: 'not shown' })
    await page.getByRole('table', { name: 'Messages' }).getByText('shown', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    await server.tool('events_publish', { channel: 'live.two', body: 'later' })
    await page.getByText('1 message passed while the list was paused.').waitFor()
    expect(await page.getByText('later', { exact: true }).count()).toBe(0)
    expectQuiet(watched)
  })

  test('console - all text of users is text: markup, bidi controls, 10 MB bodies and 256 tags', async () => {
    await server.tool('queue_send', {
      channel: 'hostile',
      body: EVIL,
      metadata: EVIL,
      tags: { [EVIL]: EVIL, dlq_source: EVIL },
    })
    const tags = Object.fromEntries(Array.from({ length: 256 }, (_, index) => [`tag-${index}`, 'x'.repeat(800)]))
    await server.tool('queue_send', { channel: 'hostile', body: 'many tags', tags })
    await server.tool('queue_send', { channel: 'hostile', body: 'x'.repeat(9_900_000) })
    const watched = await open('channels/queues/hostile')
    const { page } = watched
    const rows = page.getByRole('table', { name: 'Messages' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(3)
    const dialog = page.getByRole('dialog')
    const body = dialog.getByRole('region', { name: 'Body' })
    await rows.first().press('Enter')
    await body.waitFor()
    expect(await body.textContent()).toBe(EVIL.replace('\u202E', '<U+202E>'))
    expect(await violationsOf(page)).toEqual([])
    for (const index of [1, 2]) {
      await page.keyboard.press('Escape')
      await page.locator('dialog').waitFor({ state: 'detached' })
      await rows.nth(index).press('Enter')
      await body.waitFor()
    }
    await page.goto(`${server.console}#/dead-letters?channel=hostile`)
    await page
      .getByRole('table', { name: 'Groups of dead letters' })
      .or(page.getByText('holds no dead letters'))
      .waitFor()
    expect(await page.locator('main img, main script').count()).toBe(0)
    expect(await page.title()).not.toBe('owned')
    expectQuiet(watched)
  })

  test.for([
    ['light', 1440],
    ['dark', 390],
  ] as const)('console - screens with traffic have no accessibility violation, %s at %i', async ([scheme, width]) => {
    const watched = await open('overview', { scheme, width })
    const { page } = watched
    for (const place of [
      'overview',
      'channels',
      'channels/queues/orders.south',
      'channels/events_store/ledger',
      'channels/events/prices.north',
      'dead-letters',
      'dead-letters?channel=payments.dead',
      'live',
    ]) {
      await page.goto(`${server.console}#/${place}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.getByText('Loading …').first().waitFor({ state: 'detached' })
      expect([place, await violationsOf(page)]).toEqual([place, []])
    }
    expectQuiet(watched)
  })
})
