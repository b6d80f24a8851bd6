import { describe, expect, test } from 'vitest'

import { EchoAgent, TRANSLATOR } from './agents.ts'
import { beforeScreens, hasBrowser, openPage, violationsOf } from './browser.ts'
import { screenProblems } from './check-screen.ts'
import { startTask } from './estate.ts'
import { Server } from './server.ts'

let server: Server
let agent: EchoAgent
beforeScreens(async (held) => {
  server = held.use(await Server.start())
  agent = held.use(await EchoAgent.start())
  await agent.register(server, TRANSLATOR)
})

/** Opens a stream of the agent, which stays open; aborted after the test. */
function openStream(signal: AbortSignal): Promise<Response> {
  const message = { kind: 'message', role: 'user', messageId: '1', parts: [{ kind: 'text', text: 'wait' }] }
  return fetch(`${server.http}/a2a/translator`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: { message } }),
    signal,
  })
}

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - a request that waits is listed, and its end', async () => {
    const { page } = await openPage(`${server.console}#/requests`)
    await page.getByText('No command or query waits').waitFor()
    const listed = new AbortController()
    // One after the other, for a page that reads the list seldom.
    const asked = (async () => {
      while (!listed.signal.aborted) {
        await server.tool('query_send', { channel: 'menu', body: 'soup?', timeout_seconds: 4 })
      }
    })()
    await page.getByRole('table', { name: 'Waiting requests' }).getByText('No responder').waitFor()
    listed.abort()
    await page.getByRole('table', { name: 'Ended requests' }).getByText('NO_SUBSCRIBER').first().waitFor()
    await expect.poll(() => page.getByRole('table', { name: 'Waiting requests' }).count()).toBe(0)
    await asked
  })

  test('console - an operator sends a query, and sees that nobody answers', async () => {
    const { page } = await openPage(`${server.console}#/requests?channel=menu`)
    await page.getByRole('button', { name: 'Send request' }).click()
    const dialog = page.getByRole('dialog', { name: 'Send request' })
    expect(await dialog.getByLabel('Channel').inputValue()).toBe('menu')
    await dialog.getByLabel('Body').fill('soup?')
    await dialog.getByLabel('Time-out').fill('1')
    await dialog.getByRole('button', { name: 'Send' }).click()
    await dialog.getByText('NO_SUBSCRIBER').waitFor()
  })

  test('console - a stream of an agent is listed, and ended by an operator', async () => {
    const ended = new AbortController()
    const response = await openStream(ended.signal)
    const { page } = await openPage(`${server.console}#/tasks`)
    await page.getByText('No task is under way.').waitFor()
    const row = page
      .getByRole('table', { name: 'Streams of agents' })
      .getByRole('row')
      .filter({ hasText: 'translator' })
    await row.getByRole('link').nth(1).click()
    const dialog = page.getByRole('dialog', { name: 'Stream', exact: true })
    const timeline = dialog.getByRole('list', { name: 'Timeline' })
    await timeline.getByText('Status update').waitFor()
    expect(await timeline.getByRole('listitem').allInnerTexts()).toEqual([
      expect.stringContaining('Opened'),
      expect.stringMatching(/Status update[^]*\d+ bytes/),
    ])
    expect(await violationsOf(page)).toEqual([])
    await page.keyboard.press('Escape')
    await page.locator('dialog').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'End the stream of translator' }).click()
    await page.getByRole('dialog', { name: 'End stream' }).getByRole('button', { name: 'End', exact: true }).click()
    await page.getByText('No stream of an agent is open').waitFor()
    expect(await response.text()).toContain('task.error')
    ended.abort()
  })

  test('console - a task is opened with its timeline, and cancelled', async () => {
    expect(await startTask(server.http)).toMatchObject({ result: { taskId: expect.any(String) } })
    const { page } = await openPage(`${server.console}#/tasks`)
    await page.getByRole('row', { name: /agent_send/ }).focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Task' })
    const timeline = dialog.getByRole('list', { name: 'Timeline' })
    await timeline.waitFor()
    const before = await timeline.getByRole('listitem').count()
    expect(await violationsOf(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Cancel task' }).click()
    await dialog.getByText('• Cancelled').waitFor()
    await timeline.getByRole('listitem').nth(before).waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('No task is under way.').waitFor()
  })

  test('console - the way of a message is shown by its id, and an unknown id says so', async () => {
    const { id } = await server.act('send_queue_message', { channel: 'orders', body: 'x' })
    await server.tool('queue_receive', { channel: 'orders', max_messages: 1, wait_timeout_seconds: 1 })
    const { page } = await openPage(`${server.console}#/trace`)
    await page.getByLabel('Id of the message').fill(String(id))
    await page.keyboard.press('Enter')
    const steps = page.getByRole('list', { name: 'Steps' })
    await steps.getByText('Accepted from').waitFor()
    await steps.getByText('Delivered to').waitFor()
    await expect.poll(() => page.url()).toContain(`id=${String(id)}`)
    await page.getByLabel('Id of the message').fill('unknown')
    await page.keyboard.press('Enter')
    await page.getByText('This node has seen no step').waitFor()
  })

  test('console - the screens of work are accessible, wide and narrow', async () => {
    const { id } = await server.act('send_queue_message', { channel: 'traced', body: 'x' })
    expect(await screenProblems(`${server.console}#/requests`, 'Ended')).toEqual([])
    expect(await screenProblems(`${server.console}#/tasks?show=all`, 'All stored')).toEqual([])
    expect(await screenProblems(`${server.console}#/trace?id=${String(id)}`, 'Accepted from')).toEqual([])
  })
})
