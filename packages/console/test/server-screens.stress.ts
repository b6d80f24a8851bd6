import { writeFile } from 'node:fs/promises'

import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'
import { describe, expect, test } from 'vitest'

import { beforeScreens, expectQuiet, hasBrowser, openPage, violationsOf } from './browser.ts'
import { screenProblems } from './check-screen.ts'
import { openEndpoint } from './estate.ts'
import { Server } from './server.ts'

const POLICY = `rules:
  - { clients: eve, actions: send, patterns: queues, channels: "secret.*", effect: deny }
  - { clients: "*", actions: "*", patterns: "*", channels: "*", effect: allow }
`

const ROUTES = [
  { key: String.raw`orders\..+`, routes: 'events_store:archive;queues:work' },
  { key: "type = '<img src=x>'", keyType: 'cesql', routes: 'queues:work' },
]

let folder: TemporaryFolder
let server: Server
let sink: string
beforeScreens(async (held) => {
  folder = held.use(await TemporaryFolder.create('console-server'))
  await writeFile(folder.join('policy.yaml'), POLICY)
  await writeFile(folder.join('routes.json'), JSON.stringify(ROUTES))
  sink = await openEndpoint(held)
  server = held.use(
    await Server.start({
      ROUTING_FILE: folder.join('routes.json'),
      AUTHORIZATION_ENABLE: 'true',
      AUTHORIZATION_POLICY_FILE: folder.join('policy.yaml'),
      WEBHOOKS_ENABLE: 'true',
      WEBHOOKS_KEY_FILE: folder.join('webhooks.key'),
      WEBHOOKS_ALLOW: '127.0.0.1',
    }),
  )
})

/** Subscribes the endpoint; returns the id. */
async function subscribe(): Promise<string> {
  const response = await fetch(`${server.http}/ce/subscriptions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      sink,
      config: { channel: 'ledger', secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=' },
    }),
  })
  if (response.status !== 201) throw new Error(`subscribe: ${response.status} ${await response.text()}`)
  const { id } = (await response.json()) as { readonly id: string }
  return id
}

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - the policy in force is shown, and tells which rule decides', async () => {
    const { page } = await openPage(`${server.console}#/security`)
    await page.getByText('2 rules').waitFor()
    await page.getByLabel('Caller').fill('eve')
    await page.getByLabel('Channel').fill('secret.plans')
    await page.keyboard.press('Enter')
    await page.getByText('✕ Denied').waitFor()
    await page.getByText('0, which denies').waitFor()
    await expect.poll(() => page.url()).toContain('client=eve')
    await page.getByLabel('Caller').fill('bob')
    await page.keyboard.press('Enter')
    await page.getByText('✓ Allowed').waitFor()
  })

  test('console - settings show their sources, and are found by text', async () => {
    const { page } = await openPage(`${server.console}#/settings`)
    await page.getByText('environment ROUTING_FILE').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('routing_file')
    await page.getByRole('link', { name: 'STORE_PATH' }).waitFor({ state: 'detached' })
    const link = page.getByRole('link', { name: 'ROUTING_FILE' })
    expect(await link.getAttribute('href')).toContain('configuration.md#routing_file')
    await page.getByRole('button', { name: 'Changed' }).click()
    await expect.poll(() => new URL(page.url()).hash).toBe('#/settings?search=routing_file&show=changed')
  })

  test('console - the routing table is a picture and a table, and its keys are text', async () => {
    const { page } = await openPage(`${server.console}#/settings`)
    const picture = page.getByRole('img', { name: /Events store archive/ })
    await picture.waitFor()
    expect(await picture.locator('rect').count()).toBe(4)
    expect(await picture.locator('path:not(.arrow)').count()).toBe(3)
    await page.getByRole('button', { name: 'Table' }).click()
    await page.getByRole('table', { name: 'Routing table' }).getByText("type = '<img src=x>'").waitFor()
    expect(await page.locator('main img').count()).toBe(0)
  })

  test('console - a webhook subscription is tested, paused, resumed and delivered again', async () => {
    const { page } = await openPage(`${server.console}#/webhooks`)
    await page.getByText('No client has subscribed.').waitFor()
    await subscribe()
    await page.getByRole('row', { name: /ledger/ }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Webhook subscription' })
    await dialog.getByRole('button', { name: 'Send test message' }).click()
    await dialog.getByText('The endpoint answered with status 204.').waitFor()
    await dialog.getByRole('button', { name: 'Pause' }).click()
    await dialog.getByText('The deliveries are paused.').waitFor()
    await dialog.getByRole('button', { name: 'Resume' }).click()
    await dialog.getByText('The deliveries continue.').waitFor()
    await dialog.getByLabel('Deliver again').fill('1')
    await dialog.getByRole('button', { name: 'Redeliver' }).click()
    await dialog.getByText('The events from sequence 1 on are delivered again.').waitFor()
    expect(await screenProblems(page.url(), 'Deliver again')).toEqual([])
  })

  test('console - the secret of a webhook subscription is rotated, and shown once', async () => {
    const watched = await openPage(`${server.console}#/webhooks/${await subscribe()}`)
    const { page } = watched
    await page.getByRole('button', { name: 'Rotate secret' }).click()
    const dialog = page.getByRole('dialog', { name: 'Rotate secret' })
    expect(await violationsOf(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Rotate', exact: true }).click()
    const secret = dialog.getByLabel('New secret')
    expect(await secret.inputValue()).toMatch(/^whsec_.{32,}$/)
    await dialog.getByText('The old secret is valid for a day, until').waitFor()
    expect(await violationsOf(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('dialog', { name: 'Webhook subscription' }).waitFor()
    expect(await page.evaluate(() => document.documentElement.outerHTML.includes('whsec_'))).toBe(false)
    await page.getByRole('button', { name: 'Rotate secret' }).click()
    await dialog.getByText('The page shows it once.').waitFor()
    expectQuiet(watched)
  })

  test('console - the screens of the server are accessible, wide and narrow', async () => {
    expect(
      await screenProblems(
        `${server.console}#/security?client=eve&action=send&pattern=queues&channel=secret.a`,
        'which denies',
      ),
    ).toEqual([])
    expect(await screenProblems(`${server.console}#/settings`, 'STORE_PATH')).toEqual([])
  })
})
