import { hasChromium } from '@signalbox/testkit/chromium'
import { describe, expect, test } from 'vitest'

import { openConsole, signedIn, signIn, signInAs, withBrowser } from './support/console-sign-in.ts'

withBrowser()

describe.skipIf(!hasChromium)('in a real browser', () => {
  test.each(['ReadOnly', 'Admin'])(
    'console - an operator signs in at the identity provider and reads as %s',
    async (role) => {
      expect(await signInAs(role)).toEqual([])
    },
  )

  test('console - after the token expires an operator signs in again and returns to the same page', async () => {
    const opened = await openConsole({ tokenSeconds: 2, refresh: false })
    const { as, page, console } = opened
    as.claims = { roles: ['Admin'] }
    await page.goto(`${console}#/audit?action=purge_queue`)
    await signIn(opened)
    await signedIn(page)
    await page.getByText('The session has expired').waitFor({ timeout: 30_000 })
    expect(page.url()).toBe(`${console}#/audit?action=purge_queue`)
    as.tokenSeconds = 300
    await signIn(opened)
    await signedIn(page)
    expect(page.url()).toBe(`${console}#/audit?action=purge_queue`)
  }, 120_000)

  test('console - with a refresh token the page renews its token without a new sign-in', async () => {
    const opened = await openConsole({ tokenSeconds: 8 })
    const { as, page, console, problems } = opened
    as.claims = { roles: ['Admin'] }
    let renewals = 0
    page.on('requestfinished', (request) => {
      if (request.postData()?.includes('grant_type=refresh_token') === true) renewals++
    })
    await page.goto(console)
    await signIn(opened)
    await signedIn(page)
    await expect.poll(() => renewals, { timeout: 40_000 }).toBeGreaterThanOrEqual(2)
    // The page has kept the new tokens when it calls again. A reload before that would lose them: each renews once.
    await page.waitForRequest((request) => request.url().includes('/api/'))
    await signedIn(page)
    expect(as.asked).toHaveLength(1)
    await page.reload()
    await signedIn(page)
    expect(problems).toEqual([])
  }, 120_000)

  test('console - a provider that does not allow the origin of the page is named', async () => {
    const opened = await openConsole({ pages: [] })
    const { as, page, console } = opened
    await page.goto(console)
    await signIn(opened)
    await page.getByText(`The page got no answer from ${as.issuer}.`).waitFor()
    expect(page.url()).toBe(console)
  })
})
