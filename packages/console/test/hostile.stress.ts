import { describe, expect, test } from 'vitest'

import { HOSTILE, MARKUP } from './agents.ts'
import { beforeScreens, expectQuiet, hasBrowser, openPage, violationsOf } from './browser.ts'
import { Estate } from './estate.ts'

let estate: Estate
beforeScreens(async (held) => {
  estate = held.use(
    await Estate.start({
      texts: { agent: MARKUP, about: HOSTILE, skill: MARKUP, tag: MARKUP, body: HOSTILE, caller: MARKUP },
    }),
  )
})

/** The places, and whether each shows a text that a user wrote. */
const PLACES: readonly (readonly [string, string])[] = [
  ['overview', 'Busiest channels'],
  ['channels', 'orders.north'],
  ['channels/queues/orders.north', MARKUP],
  ['channels/queues/orders.north?message=1', 'order'],
  ['channels/events_store/ledger', MARKUP],
  ['channels/events_store/ledger?message=31', MARKUP],
  ['dead-letters?channel=payments.dead&source=payments&reason=max_receive_count', 'payments'],
  ['requests', 'prices.ask'],
  ['agents', MARKUP],
  ['agents/planner', MARKUP],
  ['tasks?show=all', 'agent_send'],
  ['tools/agent_info', 'agent_info'],
  ['trace', 'Trace'],
  ['map?window=hour', 'orders.north'],
  [`map?search=${encodeURIComponent(HOSTILE)}`, 'No message has passed'],
  [`map/client/${encodeURIComponent(HOSTILE)}`, MARKUP],
  ['audit', 'purge_queue'],
  ['webhooks', '127.0.0.1'],
  ['security', 'rules'],
  [
    `security?client=${encodeURIComponent(HOSTILE)}&channel=${encodeURIComponent(HOSTILE)}&action=send&pattern=queues`,
    'PARAMETER_INVALID',
  ],
  ['settings', 'Events store'],
  [`channels?search=${encodeURIComponent(HOSTILE)}`, 'No channel matches'],
  [`channels/queues/${encodeURIComponent(HOSTILE)}`, MARKUP],
  [`agents/${encodeURIComponent(HOSTILE)}`, 'AGENT_NOT_FOUND'],
  [`trace?id=${encodeURIComponent(HOSTILE)}`, 'Trace'],
  [`audit?client=${encodeURIComponent(HOSTILE)}`, 'Audit'],
  [`webhooks/${encodeURIComponent(HOSTILE)}`, 'Webhooks'],
  [`tools/${encodeURIComponent(HOSTILE)}`, 'Tools'],
  [`dead-letters?channel=${encodeURIComponent(HOSTILE)}`, 'Dead letters'],
]

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - markup and bidi controls of clients, agents and URLs are text on every screen', async () => {
    const watched = await openPage(estate.server.console)
    const { page } = watched
    for (const [place, text] of PLACES) {
      await page.goto(`${estate.server.console}#/${place}`)
      await page
        .getByText(text)
        .first()
        .waitFor()
        .catch((error: unknown) => {
          throw new Error(`${place} does not show ${text}`, { cause: error })
        })
      await page.getByText('Loading …').first().waitFor({ state: 'detached' })
      const found = await page.evaluate(() => ({
        markup: document.querySelectorAll('main img, main script, main iframe, dialog img').length,
        hidden: /[\u202A-\u202E\u2066-\u2069]/.test(document.body.textContent ?? ''),
        title: /^[\w ]+ · Signalbox$/.test(document.title),
        sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      }))
      expect([place, found]).toEqual([place, { markup: 0, hidden: false, title: true, sideways: 0 }])
    }
    expectQuiet({ ...watched, problems: watched.problems.filter((problem) => !/status of 40[04]/.test(problem)) })
  })

  test('console - markup and bidi controls in messages that pass are text in the live tail', async () => {
    // The query of the estate passes other channels, at any time.
    const watched = await openPage(`${estate.server.console}#/live?channel=prices.north`)
    const { page } = watched
    await page.locator('.badge', { hasText: 'Live' }).waitFor()
    const message = { body: HOSTILE, metadata: HOSTILE, tags: { [HOSTILE]: HOSTILE } }
    await estate.server.tool('events_publish', { channel: 'prices.north', ...message })
    await page.getByRole('table', { name: 'Messages' }).locator('tbody tr').first().press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('region', { name: 'Body' }).waitFor()
    const text = (await dialog.textContent()) ?? ''
    expect(text.split('<U+202E>reversed')).toHaveLength(5)
    expect(await page.locator('main img, dialog img').count()).toBe(0)
    expect(await violationsOf(page)).toEqual([])
    expectQuiet(watched)
  })
})
