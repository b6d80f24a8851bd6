import { hasChromium, startChromium } from '@signalbox/testkit/chromium'
import { freePort } from '@signalbox/testkit/free-port'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'

import type { AuthorizationServer, AuthorizationServerOptions } from './authorization-server.ts'
import { startAuthorizationServer } from './authorization-server.ts'
import { serve } from './server.ts'

const RESOURCE = 'https://broker.example.com/mcp'

let browser: Browser

/** Starts the browser of a file's tests. Call it in the file. */
export function withBrowser(): void {
  beforeAll(async () => {
    if (hasChromium) browser = await startChromium()
  }, 60_000)
  afterAll(async () => {
    if (hasChromium) await browser.close()
  })
}

interface SignInServer {
  readonly as: AuthorizationServer
  readonly page: Page
  readonly console: string
  /** Errors of scripts, and refusals by the security policy. */
  readonly problems: string[]
}

/** A server whose operators sign in at an identity provider, and a page of a browser that opened nothing yet. */
export async function openConsole(options: AuthorizationServerOptions = {}): Promise<SignInServer> {
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

export async function signIn({ page, as }: SignInServer): Promise<void> {
  await page.getByRole('button', { name: `Sign in with ${new URL(as.issuer).host}` }).click()
}

export async function signedIn(page: Page): Promise<void> {
  await page.getByRole('banner').getByText('Ready').waitFor()
}

/** Lets an operator with this role sign in, and look for the actions of the role. Returns the problems of the page. */
export async function signInAs(role: string): Promise<readonly string[]> {
  const opened = await openConsole()
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
  return problems
}
