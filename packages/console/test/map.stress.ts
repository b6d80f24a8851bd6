import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { beforeScreens, expectQuiet, goTo, hasBrowser, openPage, violationsOf } from './browser.ts'
import { OTHER_VIEWS, screenProblems } from './check-screen.ts'
import { crowd, CROWD, repeat, startMapped, talk } from './map-traffic.ts'
import { Operator } from './operator.ts'
import type { Server } from './server.ts'

let few: Server
let many: Server
beforeScreens(async (held) => {
  const folder = held.use(await TemporaryFolder.create('console-map'))
  few = held.use(await startMapped(folder.join('few.key')))
  many = held.use(await startMapped(folder.join('many.key')))
  await talk(few, held)
  await crowd(many)
})

const HOUR = 'map?window=hour'

function nodes(page: Page, column: string) {
  return page.getByRole('list', { name: column }).getByRole('link')
}

/** Returns the places of all nodes by their ids. */
function placesOf(page: Page): Promise<Readonly<Record<string, string>>> {
  return page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll<HTMLElement>('[data-node]')].map((node) => {
        const { left, top } = node.getBoundingClientRect()
        return [node.dataset['node'] ?? '', `${left} ${top + scrollY}`]
      }),
    ),
  )
}

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - the map shows callers, channels, agents and webhooks, each with its name and traffic', async () => {
    const watched = await openPage(few.console)
    const { page } = watched
    await goTo(page, 'p')
    await page.getByRole('button', { name: 'Last hour' }).click()
    const texts = (column: string) => nodes(page, column).allTextContents()
    await expect.poll(async () => (await texts('Callers')).length).toBe(3)
    const [assistant, billing, shop] = await texts('Callers')
    expect(assistant).toMatch(/^assistant Caller: [\d.]+\/\w+ out✕ 1, 1 error, 1 connection$/)
    expect(billing).toMatch(/^billing Caller: [\d.]+\/\w+ out, 1 connection$/)
    expect(shop).toMatch(/^shop Caller: [\d.]+\/\w+ out, 2 connections$/)
    expect((await texts('Channels and agents')).map((text) => /^\S+ [\w ]+/.exec(text)?.[0])).toEqual([
      'ledger Events store',
      'orders Queue',
      'payments Queue',
      'translator Agent',
    ])
    expect((await texts('Receivers and webhooks')).map((text) => /^\S+ \w+/.exec(text)?.[0])).toEqual([
      'packing Receiver',
      'payment-worker Receiver',
      expect.stringMatching(/^127\.0\.0\.1:\d+ Webhook$/),
    ])
    expectQuiet(watched)
  })

  test('console - the table has the connections of the map, with their counts', async () => {
    const { page } = await openPage(`${few.console}#/${HOUR}`)
    const rows = page.getByRole('table', { name: 'Connections' }).locator('tbody tr')
    await expect.poll(() => rows.count()).toBe(7)
    const row = rows.filter({ hasText: 'translator' })
    expect(await row.locator('td').allTextContents()).toEqual([
      'assistant Caller',
      'translator Agent',
      '2',
      expect.stringMatching(/^[\d.]+\/\w+$/),
      '1',
      expect.stringMatching(/^[\d.]+ m?s$/),
    ])
    await row.getByRole('link', { name: 'translator' }).click()
    await page.getByRole('heading', { level: 1, name: 'Translator' }).waitFor()
  })

  test('console - the arrow keys move between nodes of the map, and Enter opens one', async () => {
    const watched = await openPage(`${few.console}#/${HOUR}`)
    const { page } = watched
    const operator = new Operator(page)
    await nodes(page, 'Callers').first().waitFor()
    const focused = () => page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset['node'])
    await operator.tabTo(nodes(page, 'Callers').first())
    await operator.press('ArrowDown', 'ArrowDown', 'ArrowRight')
    expect(await focused()).toBe('queues/payments')
    expect(await violationsOf(page)).toEqual([])
    await operator.press('End')
    expect(await focused()).toBe('agents/translator')
    await operator.press('Home', 'ArrowRight', 'ArrowUp')
    expect(await focused()).toBe('receivers/packing')
    // One stop of the tabulator for the whole picture.
    await operator.press('Tab')
    expect(await focused()).toBeUndefined()
    await operator.press('Shift+Tab')
    expect(await focused()).toBe('receivers/packing')
    await operator.press('ArrowLeft')
    const opened = (await focused()) ?? ''
    await operator.press('Enter')
    await expect.poll(() => new URL(page.url()).hash).toBe(`#/channels/${opened}`)
    expectQuiet(watched)
  })

  test('console - a client of the map has a page with its traffic', async () => {
    const { page } = await openPage(`${few.console}#/${HOUR}`)
    await nodes(page, 'Callers').filter({ hasText: 'shop' }).click()
    await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor()
    await expect.poll(() => nodes(page, 'Channels and agents').count()).toBe(2)
    expect(await nodes(page, 'Callers').count()).toBe(1)
    await page.getByRole('link', { name: 'Audit log of this client' }).click()
    await page.waitForURL('**#/audit?client=shop')
  })

  test('console - nodes of the map keep their places when data are refreshed and new nodes come', async () => {
    const { page } = await openPage(`${few.console}#/${HOUR}`)
    await expect.poll(() => nodes(page, 'Channels and agents').count()).toBe(4)
    const before = await placesOf(page)
    await nodes(page, 'Callers').first().focus()
    await repeat(few)
    await few.tool('queue_send', { channel: 'a-new-queue', body: 'x' }, 'a-new-caller')
    await nodes(page, 'Callers').filter({ hasText: 'a-new-caller' }).waitFor()
    const after = await placesOf(page)
    expect(Object.keys(after)).toHaveLength(Object.keys(before).length + 2)
    expect(after).toMatchObject(before)
    expect(await page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset['node'])).toBe(
      'callers/assistant',
    )
  })

  test('console - of 300 nodes the map shows the busiest, and counts the others', async () => {
    const watched = await openPage(`${many.console}#/${HOUR}`)
    const { page } = watched
    await expect.poll(() => nodes(page, 'Callers').count()).toBe(26)
    await nodes(page, 'Callers')
      .filter({ hasText: `${CROWD.callers - 25} more callers` })
      .waitFor()
    await nodes(page, 'Channels and agents')
      .filter({ hasText: `${CROWD.channels - 25} more` })
      .waitFor()
    await nodes(page, 'Receivers and webhooks')
      .filter({ hasText: `${CROWD.receivers - 25} more receivers and webhooks` })
      .click()
    await expect.poll(() => new URL(page.url()).hash).toBe('#/map?window=hour&nodes=50')
    await expect.poll(() => nodes(page, 'Callers').count()).toBe(51)
    await page.getByLabel('Nodes of each column').selectOption('200')
    await expect.poll(() => nodes(page, 'Callers').count()).toBe(CROWD.callers)
    await page.getByLabel('Find a node').fill('caller-007')
    await expect.poll(() => nodes(page, 'Callers').count()).toBe(1)
    expectQuiet(watched)
  })

  test('console - the map is accessible with few and many nodes, wide and narrow, light and dark', async () => {
    for (const server of [few, many]) {
      for (const views of [undefined, OTHER_VIEWS]) {
        expect(await screenProblems(`${server.console}#/${HOUR}`, 'Connections', views)).toEqual([])
      }
    }
    expect(await screenProblems(`${few.console}#/map/client/shop?window=hour`, 'Connections')).toEqual([])
    expect(await screenProblems(`${few.console}#/map?search=nothing-has-this-name`, 'No message has passed')).toEqual(
      [],
    )
  })
})
