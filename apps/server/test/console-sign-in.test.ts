import { hasChromium, startChromium } from '@signalbox/testkit/chromium'
import { freePort } from '@signalbox/testkit/free-port'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'

import type { AuthorizationServer, AuthorizationServerOptions } from './support/authorization-server.ts'
import { startAuthorizationServer } from './support/authorization-server.ts'
import { serve } from './support/server.ts'

const RESOURCE = 'https://broker.example.com/mcp'

let browser: Browser
beforeAll(async () => {
  if (hasChromium) browser = await startChromium()
}, 60_000)
afterAll(async () => {
  if (hasChromium) await browser.close()
})

interface SignInServer {
  readonly as: AuthorizationServer
  readonly page: Page
  readonly console: string
  /** Errors of scripts, and refusals by the security policy. */
  readonly problems: string[]
}

/** A server whose operators sign in at an identity provider, and a page of a browser that opened nothing yet. */
async function open(options: AuthorizationServerOptions = {}): Promise<SignInServer> {
  const origin = `http://127.0.0.1:${await freePort()}`
  const console = `${origin}/console/`
  const client = {
    client_id: 'console',
    redirect_uris: [console],
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
  }
  const as = await startAuthorizationServer('alice', { clients: [client], pages: [origin], ...options })
  await serve({
    api: { port: Number(new URL(origin).port), authentication: { enable: true } },
    authentication: { jwksUrl: as.jwksUrl, issuer: as.issuer, audience: [RESOURCE] },
    console: { oauth: { clientId: 'console', resource: RESOURCE } },
  })
  const context = await browser.newContext({ reducedMotion: 'reduce' })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('console', (message) => {
    const isAnswer = message.text().includes('401 (Unauthorized)')
    if (message.type() === 'error' && !isAnswer) problems.push(message.text())
  })
  return { as, page, console, problems }
}

async function signIn({ page, as }: SignInServer): Promise<void> {
  await page.getByRole('button', { name: `Sign in with ${new URL(as.issuer).host}` }).click()
}

async function signedIn(page: Page): Promise<void> {
  await page.getByRole('banner').getByText('Ready').waitFor()
}

describe.skipIf(!hasChromium)('in a real browser', () => {
  for (const role of ['ReadOnly', 'ReadWrite', 'Admin']) {
    test(`console - an operator signs in at the identity provider and reads as ${role}`, async () => {
      const opened = await open()
      const { as, page, console, problems } = opened
      as.claims = { ClientID: 'alice', roles: [role] }
      await page.goto(`${console}#/channels?search=orders`)
      const operator = page.waitForResponse((response) => response.url().endsWith('/api/operator') && response.ok())
      await signIn(opened)
      const { data } = await (await operator).json()
      expect([data.client, data.roles.at(-1)]).toEqual(['alice', role])
      await signedIn(page)
      expect(page.url()).toBe(`${console}#/channels?search=orders`)
      expect(as.asked).toContainEqual({ scope: 'openid', resource: RESOURCE })
      const create = page.getByRole('button', { name: 'Create channel' })
      await expect.poll(() => create.count()).toBe(role === 'ReadOnly' ? 0 : 1)
      await page.reload()
      await signedIn(page)
      expect(problems).toEqual([])
    })
  }

  test('console - after the token expires an operator signs in again and returns to the same page', async () => {
    const opened = await open({ tokenSeconds: 2, refresh: false })
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
    const opened = await open({ tokenSeconds: 8 })
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

  test('console - an answer with a wrong state is refused, and exchanges no code', async () => {
    const opened = await open()
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

  test('console - a provider that does not allow the origin of the page is named', async () => {
    const opened = await open({ pages: [] })
    const { as, page, console } = opened
    await page.goto(console)
    await signIn(opened)
    await page.getByText(`The page got no answer from ${as.issuer}.`).waitFor()
    expect(page.url()).toBe(console)
  })
})
