import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { beforeScreens, expectQuiet, hasBrowser, openPage, violationsOf } from './browser.ts'
import { Estate } from './estate.ts'

let estate: Estate
beforeScreens(async (held) => {
  estate = held.use(await Estate.start())
})

function button(name: string): (page: Page) => Promise<void> {
  return (page) => page.getByRole('button', { name, exact: true }).first().click()
}

function firstRow(table: string): (page: Page) => Promise<void> {
  return (page) => page.getByRole('table', { name: table, exact: true }).locator('tbody tr').first().press('Enter')
}

const DEAD = 'dead-letters?channel=payments.dead&source=payments&reason=max_receive_count'

/** The places, and what opens a dialog there. */
const DIALOGS: readonly (readonly [string, (page: Page) => Promise<void>])[] = [
  ['overview', (page) => page.keyboard.press('?')],
  ['channels', button('Create channel')],
  ['channels/queues/orders.south', button('Send message')],
  ['channels/queues/orders.south', button('Delete')],
  ['channels/queues/orders.south?message=1', button('Edit and resend')],
  [DEAD, button('Redrive all')],
  [DEAD, firstRow('Dead letters')],
  ['requests', button('Send request')],
  ['agents/planner', button('Deregister')],
  ['audit', firstRow('Audit log')],
  ['webhooks', firstRow('Webhook subscriptions')],
  // All, because the call of the agent may have timed out by then.
  ['tasks?show=all', firstRow('Tasks')],
]

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test.for([
    ['light', 1440],
    ['dark', 390],
  ] as const)(
    'console - dialogs have no accessibility violation, %s at %i, and close with Escape',
    async ([scheme, width]) => {
      const watched = await openPage(estate.server.console, { scheme, width })
      const { page } = watched
      for (const [place, open] of DIALOGS) {
        await page.goto(`${estate.server.console}#/${place}`)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await open(page)
        const dialog = page.getByRole('dialog')
        await dialog.waitFor()
        await dialog.getByText('Loading …').waitFor({ state: 'detached' })
        const sideways = await dialog.evaluate((element) => element.scrollWidth - element.clientWidth)
        expect([place, sideways, await violationsOf(page)]).toEqual([place, 0, []])
        await page.keyboard.press('Escape')
        // A closed dialog has no role, but leaves the place only when it is removed.
        await page.locator('dialog').waitFor({ state: 'detached' })
      }
      expectQuiet(watched)
    },
  )
})
