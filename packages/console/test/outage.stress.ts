import { describe, expect, test } from 'vitest'

import { beforeScreens, goTo, hasBrowser, openPage } from './browser.ts'
import { CrashingServer } from './crashing-server.ts'
import { SCREENS } from './screens.ts'

/** The page asks every 5 s. The rest is for a busy machine. */
const MAX_SECONDS = 20

let server: CrashingServer
beforeScreens(async (held) => {
  server = held.use(await CrashingServer.start())
})

async function secondsOf(action: () => Promise<void>): Promise<number> {
  const begin = performance.now()
  await action()
  return (performance.now() - begin) / 1_000
}

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - a server that went away is reported within seconds, and every screen goes on when it is back', async () => {
    await server.tool('queue_send', { channel: 'orders', body: 'before' })
    const { page: list } = await openPage(`${server.console}#/channels/queues/orders`)
    const { page: live } = await openPage(`${server.console}#/live`)
    const pages = [list, live]
    await live.locator('.badge', { hasText: 'Live' }).waitFor()
    await list.getByRole('table', { name: 'Messages' }).getByText('before').waitFor()
    // A page that loads itself again would lose this.
    for (const page of pages) await page.evaluate(() => document.body.setAttribute('data-loaded', 'once'))

    await server.stop()
    const reported = await secondsOf(async () => {
      for (const page of pages) await page.getByText('Connection lost.').waitFor()
      await live.locator('.badge', { hasText: /Disconnected|Connecting/ }).waitFor()
    })
    // The last known data stay.
    expect(await list.getByRole('table', { name: 'Messages' }).getByText('before').count()).toBe(1)

    await server.resume()
    const mended = await secondsOf(async () => {
      for (const page of pages) await page.getByText('Connection lost.').waitFor({ state: 'detached' })
      await live.locator('.badge', { hasText: 'Live' }).waitFor()
    })
    await server.tool('queue_send', { channel: 'orders', body: 'after' })
    await list.getByRole('table', { name: 'Messages' }).getByText('after').waitFor()
    await live.getByRole('table', { name: 'Messages' }).getByText('after').waitFor()
    console.log(
      `outage: reported in ${reported.toFixed(1)} s, mended ${mended.toFixed(1)} s after the server was ready`,
    )
    for (const page of pages) expect(await page.evaluate(() => document.body.getAttribute('data-loaded'))).toBe('once')
    expect(reported).toBeLessThan(MAX_SECONDS)
    expect(mended).toBeLessThan(MAX_SECONDS)
  })

  test('console - a screen that is opened while the server is away is complete when it is back', async () => {
    const { page } = await openPage(server.console)
    // Their scripts are loaded, as a browser keeps them.
    for (const [key, title] of Object.entries(SCREENS)) {
      await goTo(page, key)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
    }
    await server.stop()
    await goTo(page, 'c')
    await page.getByText('Connection lost.').waitFor()
    await server.resume()
    await page.getByRole('table', { name: 'Channels' }).getByRole('link', { name: 'orders' }).waitFor()
    await expect.poll(() => page.getByText('Connection lost.').count()).toBe(0)
  })
})
