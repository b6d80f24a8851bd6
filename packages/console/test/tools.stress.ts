import { freePort } from '@signalbox/testkit/free-port'
import { describe, expect, test } from 'vitest'

import { HOSTILE } from './agents.ts'
import { beforeScreens, hasBrowser, openPage } from './browser.ts'
import { screenProblems } from './check-screen.ts'
import { Server } from './server.ts'

let server: Server
beforeScreens(async (held) => {
  // The page shows the port of the settings.
  server = held.use(await Server.start({ HTTP_PORT: String(await freePort()) }))
})

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - a tool is called with a form of its schema, and the result is text', async () => {
    const { page, problems } = await openPage(`${server.console}#/tools/queue_send`)
    await page.getByLabel('channel required').fill('orders')
    await page.getByLabel('body required').fill(HOSTILE)
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    await page.getByText('Success').waitFor()
    await page.getByRole('link', { name: /queue_peek/ }).click()
    // The form before has a field for the channel, too.
    await page.getByLabel('max_messages required').fill('1')
    await page.getByLabel('channel required').fill('orders')
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    await page.getByText('<U+202E>reversed').waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(problems).toEqual([])
  })

  test('console - the call is shown as curl that works, and as a program', async () => {
    const { page } = await openPage(`${server.console}#/tools/queue_send`)
    await page.getByLabel('channel required').fill("it's")
    await page.getByLabel('body required').fill('x')
    const code = page.getByRole('region', { name: 'Call' })
    const curl = code.filter({ hasText: `${server.http}/mcp` })
    await curl.waitFor()
    const body = /-d '(.*)'$/.exec((await curl.textContent()) ?? '')?.[1] ?? ''
    expect(JSON.parse(body.replaceAll(String.raw`'\''`, "'"))).toMatchObject({
      method: 'tools/call',
      params: { name: 'queue_send', arguments: { channel: "it's", body: 'x' } },
    })
    await page.getByRole('button', { name: 'TypeScript' }).click()
    await code.filter({ hasText: 'client.callTool' }).waitFor()
    await page.getByRole('button', { name: 'JSON Schema' }).click()
    await page.getByRole('region', { name: 'Schema' }).filter({ hasText: 'properties' }).waitFor()
  })

  test('console - an argument that the tool refuses is an error with the allowed values', async () => {
    const { page } = await openPage(`${server.console}#/tools/queue_send`)
    await page.getByLabel('channel required').fill('a..b')
    await page.getByLabel('body required').fill('x')
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    const problem = page.getByRole('alert')
    await problem.waitFor()
    expect(await problem.textContent()).toMatch(/channel is "a\.\.b"; it must be .*ARGUMENT_INVALID/)
  })

  test('console - the screen of tools is accessible, wide and narrow', async () => {
    expect(await screenProblems(`${server.console}#/tools`, 'queue_send')).toEqual([])
    expect(await screenProblems(`${server.console}#/tools/queue_send`, 'The same call')).toEqual([])
  })
})
