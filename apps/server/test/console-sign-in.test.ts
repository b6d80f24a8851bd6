import { hasChromium } from '@signalbox/testkit/chromium'
import { describe, expect, test } from 'vitest'

import { openConsole, signedIn, signIn, signInAs, withBrowser } from './support/console-sign-in.ts'

withBrowser()

describe.skipIf(!hasChromium)('in a real browser', () => {
  test('console - an operator signs in at the identity provider and reads as ReadWrite', async () => {
    expect(await signInAs('ReadWrite')).toEqual([])
  })

  test('console - an answer with a wrong state is refused, and exchanges no code', async () => {
    const opened = await openConsole()
    const { as, page, console } = opened
    as.claims = { roles: ['Admin'] }
    const exchanges: string[] = []
    page.on('request', (request) => {
      if (request.url() === `${as.issuer}/token`) exchanges.push(request.url())
    })
    as.wrongState = 'of another tab'
    await page.goto(console)
    await signIn(opened)
    await page.getByText('The answer does not belong to a sign-in of this tab.').waitFor()
    expect(page.url()).toBe(console)
    expect(exchanges).toEqual([])
    await signIn(opened)
    await signedIn(page)
    expect(exchanges).toHaveLength(1)
    await page.goto(`${console}?code=x&state=of+another+site#/channels`)
    await signedIn(page)
    expect(exchanges).toHaveLength(1)
  })
})
