import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'

import { EchoAgent } from './agents.ts'
import { beforeScreens, expectQuiet, hasBrowser, openPage, violationsOf } from './browser.ts'
import { Inbox } from './inboxes.ts'
import { Server } from './server.ts'
import { SECRET, tokenOf } from './tokens.ts'

let server: Server
beforeScreens(async (held) => {
  server = held.use(await Server.start({ API_AUTHENTICATION_ENABLE: 'true', AUTHENTICATION_SECRET: SECRET }))
  const send = { channel: 'orders', body: 'one', max_receive_count: 1, dead_letter_queue: 'orders.dead' }
  await server.tool('queue_send', send)
  await (await Inbox.register(server, { agent_id: 'laptop', name: 'Laptop' })).send('tidy up')
})

async function signIn(page: Page, roles: readonly string[], seconds?: number): Promise<void> {
  await page.getByLabel('Token').fill(tokenOf(SECRET, roles, seconds))
  await page.keyboard.press('Enter')
}

/** Lets the server refuse the page's token from the given action on, until the page asks for another one. */
async function expire(page: Page, action?: () => Promise<void>): Promise<void> {
  await page.route('**/api/**', (route) =>
    route.continue({ headers: { ...route.request().headers(), authorization: 'Bearer expired' } }),
  )
  await action?.()
  await page.getByText('The server refused the token').waitFor()
  await page.unroute('**/api/**')
}

/** Returns the status of an action that the page's own token asks for. */
async function statusOf(page: Page, action: string, body: object): Promise<number> {
  return page.evaluate(
    async ([name, json]) => {
      const response = await fetch(`../api/actions/${name}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${sessionStorage.getItem('signalbox.token')}`,
        },
        body: json,
      })
      return response.status
    },
    [action, JSON.stringify(body)] as const,
  )
}

/** The server accepts a token for 5 s more: time to open a screen on a busy machine. */
const VALID_SECONDS = 5

/** The places with what a role that may write is offered there. */
const WRITING = [
  ['channels/queues/orders?message=1', 'orders', ['Send message', 'Purge', 'Delete', 'Edit and resend']],
  ['channels', 'Channels', ['Create channel']],
  ['requests', 'Requests', ['Send request']],
  ['agents/laptop', 'Laptop', ['Cancel']],
] as const

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test.for([
    [['ReadOnly'], false],
    [['ReadWrite'], true],
    [['Admin'], true],
  ] as const)('console - %o is offered what its role may do, and refused the rest by the API', async ([roles, may]) => {
    const watched = await openPage(`${server.console}#/channels/queues/orders?message=1`)
    const { page } = watched
    await signIn(page, roles)
    await page.getByRole('dialog').getByRole('region', { name: 'Body' }).waitFor()
    const offered = new Set<string>()
    for (const [place, title, names] of WRITING) {
      await page.goto(`${server.console}#/${place}`)
      // The dialog of a message makes the rest of the page inert.
      await page.locator('h1', { hasText: title }).waitFor()
      await page.getByText('Loading …').first().waitFor({ state: 'detached' })
      for (const name of names) {
        const button = page.locator('button', { hasText: name }).first()
        if (may) await button.waitFor()
        if ((await button.count()) > 0) offered.add(name)
      }
    }
    expect([...offered]).toEqual(may ? WRITING.flatMap(([, , names]) => names) : [])
    expect(await statusOf(page, 'purge_queue', { channel: 'nothing', dry_run: true })).toBe(may ? 200 : 403)
    const admin = roles[0] === 'Admin'
    expect(await statusOf(page, 'deregister_agent', { agent_id: 'nobody' })).toBe(admin ? 200 : 403)
    expectQuiet({ ...watched, problems: watched.problems.filter((problem) => !/status of 40[134]/.test(problem)) })
  })

  test('console - a token that expires while a screen is open is asked for again, and the place is kept', async () => {
    const { page } = await openPage(`${server.console}#/channels`)
    await signIn(page, ['ReadOnly'], VALID_SECONDS)
    await page.getByLabel('Find a channel').fill('ord')
    await page.waitForURL('**search=ord')
    const place = page.url()
    await page.getByText('The server refused the token').waitFor()
    expect(page.url()).toBe(place)
    await signIn(page, ['ReadWrite'])
    await page.getByText('1 channel', { exact: true }).waitFor()
    expect(await page.getByLabel('Find a channel').inputValue()).toBe('ord')
    await page.getByRole('button', { name: 'Create channel' }).waitFor()
  })

  test('console - what is typed into a form is there again after the token expired', async () => {
    const { page } = await openPage(`${server.console}#/channels/queues/orders?message=1`)
    await signIn(page, ['Admin'])
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Edit and resend' }).click()
    await dialog.getByLabel('Body').fill('half of a')
    await dialog.getByLabel('Tags').fill('shop: north')
    await expire(page, () => dialog.getByRole('button', { name: 'Resend' }).click())
    await expect.poll(() => page.getByLabel('Token').evaluate((field) => field === document.activeElement)).toBe(true)
    expect(await violationsOf(page)).toEqual([])
    await signIn(page, ['Admin'])
    await dialog.waitFor()
    expect(await dialog.getByLabel('Body').inputValue()).toBe('half of a')
    expect(await dialog.getByLabel('Tags').inputValue()).toBe('shop: north')
    await dialog.getByLabel('Body').press('End')
    await page.keyboard.type(' sentence')
    await dialog.getByRole('button', { name: 'Resend' }).click()
    await page.getByText(/^Sent to orders as message/).waitFor()
    await page.locator('dialog').waitFor({ state: 'detached' })
    const peeked = JSON.stringify(await server.tool('queue_peek', { channel: 'orders', max_messages: 10 }))
    expect(peeked).toContain('half of a sentence')

    await page.getByRole('button', { name: 'Purge' }).click()
    await dialog.getByRole('textbox').fill('ord')
    await expire(page)
    await signIn(page, ['Admin'])
    expect(await dialog.getByRole('textbox').inputValue()).toBe('ord')
    await expect
      .poll(() => dialog.getByRole('textbox').evaluate((field) => field === document.activeElement))
      .toBe(true)
    await page.keyboard.press('Escape')
    await page.locator('dialog').waitFor({ state: 'detached' })

    await page.goto(`${server.console}#/security`)
    await page.getByLabel('Caller').fill('eve')
    await expire(page)
    await signIn(page, ['Admin'])
    expect(await page.getByLabel('Caller').inputValue()).toBe('eve')
    // Another operator may come after a sign-out.
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn(page, ['Admin'])
    await page.getByLabel('Caller').waitFor()
    expect(await page.getByLabel('Caller').inputValue()).toBe('')
  })

  test('console - a live tail whose token expires asks for another one, and continues', async () => {
    const { page } = await openPage(`${server.console}#/live`)
    await signIn(page, ['ReadOnly'], VALID_SECONDS)
    await page.locator('.badge', { hasText: 'Live' }).waitFor()
    await page.getByText('The server refused the token').waitFor()
    await signIn(page, ['ReadOnly'])
    await page.locator('.badge', { hasText: 'Live' }).waitFor()
    await server.tool('events_publish', { channel: 'prices', body: 'after' })
    const rows = page.getByRole('table', { name: 'Messages' }).locator('tbody tr')
    await expect.poll(() => rows.allTextContents()).toEqual([expect.stringContaining('after')])
  })

  test('console - a role that may only read is offered no action on agents and tools', async () => {
    await using agent = await EchoAgent.start()
    await agent.register(server, { agent_id: 'planner', name: 'Planner' })
    const { page } = await openPage(`${server.console}#/agents/planner`)
    await signIn(page, ['ReadOnly'])
    await page.getByText('To call an agent, you need the role ReadWrite.').waitFor()
    expect(await page.getByRole('button', { name: 'Deregister' }).count()).toBe(0)
    await page.goto(`${server.console}#/tools/queue_send`)
    await page.getByText('To call a tool, you need the role ReadWrite.').waitFor()
    expect(await page.getByRole('button', { name: 'Call', exact: true }).count()).toBe(0)
  })

  test('console - actions that the role of the operator forbids are not offered', async () => {
    const { page } = await openPage(`${server.console}#/channels`)
    for (const [roles, offered] of [
      [['ReadOnly'], 0],
      [['ReadWrite'], 1],
    ] as const) {
      await signIn(page, roles)
      await page.getByRole('link', { name: 'orders', exact: true }).waitFor()
      await expect.poll(() => page.getByRole('button', { name: 'Create channel' }).count()).toBe(offered)
      await page.getByRole('button', { name: 'Sign out' }).click()
    }
  })
})
