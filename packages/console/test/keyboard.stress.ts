import { describe, expect, test } from 'vitest'

import { beforeScreens, expectQuiet, hasBrowser, openPage, violationsOf } from './browser.ts'
import { Operator } from './operator.ts'
import { Server } from './server.ts'
import { fill } from './traffic.ts'

let server: Server
beforeScreens(async (held) => {
  server = held.use(await Server.start())
  await fill(server)
})

describe.skipIf(!hasBrowser)('in a real browser, without a mouse', () => {
  test('console - a channel is found and purged', async () => {
    const watched = await openPage(server.console)
    const { page } = watched
    const operator = new Operator(page)
    await operator.press('g', 'c')
    await page.getByRole('heading', { level: 1, name: 'Channels' }).waitFor()
    await operator.press('/')
    await operator.type('orders.west')
    await page.getByText('1 channel', { exact: true }).waitFor()
    await operator.tabTo(page.getByRole('table', { name: 'Channels' }).locator('tbody tr').first())
    await operator.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'orders.west' }).waitFor()
    await operator.tabTo(page.getByRole('button', { name: 'Purge' }))
    await operator.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('13 messages').waitFor()
    await operator.tabTo(dialog.getByRole('textbox'))
    await operator.type('orders.west')
    await operator.press('Enter')
    await page.getByText('13 messages removed.').waitFor()
    await page.locator('dialog').waitFor({ state: 'detached' })
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Purge')
    console.log(`keyboard, purge: ${operator.keys} keys`)
    expectQuiet(watched)
  })

  test('console - a group of dead letters is redriven', async () => {
    const watched = await openPage(server.console)
    const { page } = watched
    const operator = new Operator(page)
    await operator.press('g', 'd')
    await page.getByRole('heading', { level: 1, name: 'Dead letters' }).waitFor()
    await operator.tabTo(page.getByRole('link', { name: 'payments.dead' }))
    await operator.press('Enter')
    const groups = page.getByRole('table', { name: 'Groups of dead letters' }).locator('tbody tr')
    await operator.tabTo(groups.filter({ hasText: 'invoices' }).getByRole('button', { name: 'Redrive' }))
    await operator.press('Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('4 messages').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await operator.tabTo(dialog.getByRole('button', { name: 'Redrive' }))
    await operator.press('Enter')
    await page.getByRole('table', { name: 'Redrives' }).getByText('done').waitFor()
    console.log(`keyboard, redrive: ${operator.keys} keys`)
    expectQuiet(watched)
  })

  test('console - a message is found and sent again, edited', async () => {
    const watched = await openPage(`${server.console}#/channels/queues/orders.south`)
    const { page } = watched
    const operator = new Operator(page)
    await page.getByRole('table', { name: 'Messages' }).waitFor()
    await operator.press('/')
    await operator.type('T-10"')
    const rows = page.getByRole('table', { name: 'Messages' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(1)
    await operator.tabTo(rows.first())
    await operator.press('Enter')
    const dialog = page.getByRole('dialog')
    await operator.tabTo(dialog.getByRole('button', { name: 'Edit and resend' }))
    await operator.press('Enter')
    const body = dialog.getByLabel('Body')
    await operator.tabTo(body)
    await operator.press('Control+a')
    await operator.type('{"corrected":true}')
    await operator.tabTo(dialog.getByRole('button', { name: 'Resend' }))
    await operator.press('Enter')
    await page.getByText(/^Sent to orders.south as message/).waitFor()
    await page.locator('dialog').waitFor({ state: 'detached' })
    console.log(`keyboard, edit and resend: ${operator.keys} keys`)
    expectQuiet(watched)
  })

  // A window of 1440 × 900 at 200 %, and one of 1280 at 400 %.
  test.for([
    [720, 450],
    [320, 256],
  ] as const)('console - nothing is cut in a window of %i × %i', async ([width, height]) => {
    const watched = await openPage(server.console, { width, height })
    const { page } = watched
    for (const place of PLACES) {
      await page.goto(`${server.console}#/${place}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.getByText('Loading …').first().waitFor({ state: 'detached' })
      const cut = await page.evaluate(cutElements)
      expect([place, cut]).toEqual([place, []])
    }
    expectQuiet(watched)
  })
})

const PLACES = [
  'overview',
  'channels',
  'channels/queues/orders.south',
  'channels/queues/orders.south?message=10',
  'channels/events_store/ledger',
  'dead-letters',
  'dead-letters?channel=payments.dead&source=payments&reason=max_receive_count',
  'map?window=hour',
  'live',
  'requests',
  'schedules',
  'agents',
  'tasks',
  'tools',
  'tools/queue_send',
  'trace',
  'audit',
  'webhooks',
  'security',
  'settings',
]

/** Returns the elements that a reader cannot see as a whole: right of the window, or larger than a box that cannot be scrolled. */
function cutElements(): readonly string[] {
  const problems: string[] = []
  const page = document.documentElement
  if (page.scrollWidth > page.clientWidth) problems.push(`the page is ${page.scrollWidth} px wide`)
  const boxes = [...document.querySelectorAll('main *, dialog')].filter((element) =>
    /auto|scroll|hidden|clip/.test(getComputedStyle(element).overflowX),
  )
  for (const element of document.querySelectorAll('button, a, input, select, h1, h2, dt, dd, p, legend')) {
    const { left, right, width } = element.getBoundingClientRect()
    if (
      width === 0 ||
      getComputedStyle(element).position === 'absolute' ||
      boxes.some((box) => box !== element && box.contains(element))
    )
      continue
    if (right > innerWidth + 1 || left < -1)
      problems.push(`${element.tagName} ${element.textContent?.slice(0, 40)} from ${left} to ${right}`)
  }
  // Buttons and fields whose text is longer than they are.
  for (const element of document.querySelectorAll<HTMLElement>('button, h1, h2, dt, .badge')) {
    if (
      element.scrollWidth > element.clientWidth + 2 &&
      element.clientWidth > 0 &&
      getComputedStyle(element).overflowX !== 'visible'
    )
      problems.push(`${element.tagName} ${element.textContent?.slice(0, 40)} is cut`)
  }
  return problems
}
