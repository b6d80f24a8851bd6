import { describe, expect, test } from 'vitest'

import { beforeScreens, expectQuiet, hasBrowser, openPage } from './browser.ts'
import { Operator } from './operator.ts'
import { Server } from './server.ts'
import { fill } from './traffic.ts'

let server: Server
beforeScreens(async (held) => {
  server = held.use(await Server.start())
  await fill(server)
})

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - an operator redrives what is stuck in at most 5 clicks and a minute after opening the page', async () => {
    const begin = performance.now()
    const watched = await openPage(server.console)
    const { page } = watched
    const operator = new Operator(page)
    await operator.click(page.getByRole('main').getByRole('link', { name: 'Dead-lettered' }))
    await page.getByRole('heading', { level: 1, name: 'Dead letters' }).waitFor()
    await operator.click(page.getByRole('link', { name: 'payments.dead' }))
    const groups = page.getByRole('table', { name: 'Groups of dead letters' }).locator('tbody tr')
    await operator.click(groups.filter({ hasText: 'payments' }).getByRole('button', { name: 'Redrive' }))
    await operator.click(page.getByRole('dialog').getByRole('button', { name: 'Redrive' }))
    await page.getByRole('table', { name: 'Redrives' }).getByText('done').waitFor()
    const seconds = (performance.now() - begin) / 1_000
    console.log(`redrive: ${operator.clicks} clicks, ${operator.keys} keys, ${seconds.toFixed(1)} s of waiting`)
    expect(operator.clicks + operator.keys).toBeLessThanOrEqual(5)
    expect(seconds).toBeLessThan(60)
    const { count } = await server
      .act('purge_queue', { channel: 'payments', dry_run: true })
      .then(({ would_purge: purged }) => ({ count: purged }))
    expect(count).toBe(12)
    expectQuiet(watched)
  })
})
