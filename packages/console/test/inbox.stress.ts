import { describe, expect, test } from 'vitest'

import { MARKUP } from './agents.ts'
import { beforeScreens, hasBrowser, openPage } from './browser.ts'
import { screenProblems } from './check-screen.ts'
import { Inbox } from './inboxes.ts'
import { Server } from './server.ts'

let server: Server
let inbox: Inbox
beforeScreens(async (held) => {
  server = held.use(await Server.start())
  inbox = await Inbox.register(server, { agent_id: 'laptop', name: 'Laptop' })
})

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - the inbox of an agent is shown, and a task of it canceled', async () => {
    const task = await inbox.send('tidy up')
    const { page, problems } = await openPage(`${server.console}#/agents/laptop`)
    const row = page.getByRole('table', { name: 'Tasks of the inbox' }).getByRole('row', { name: task })
    await row.getByText('Waiting').waitFor()
    await page.getByText('the agent leases them from its inbox').waitFor()
    await row.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('dialog', { name: 'Cancel task' }).getByRole('button', { name: 'Cancel task' }).click()
    await page.getByText('The task is over.').waitFor()
    await row.waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'All' }).click()
    await row.getByText('Canceled').waitFor()
    await expect.poll(() => new URL(page.url()).hash).toBe('#/agents/laptop?tasks=all')
    expect(problems).toEqual([])
  })

  test('console - a task shows its events as text, and those that follow', async () => {
    const task = await inbox.send(MARKUP)
    const { page, problems } = await openPage(`${server.console}#/agents/laptop`)
    await page.getByRole('link', { name: task }).click()
    const dialog = page.getByRole('dialog', { name: 'Task' })
    const events = dialog.getByRole('list', { name: 'Events' })
    // As JSON, with escaped quotes.
    await events.getByText('<img src=x onerror=').first().waitFor()
    const { receipt } = await inbox.lease()
    await inbox.write(receipt, [
      { statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } },
      { artifactUpdate: { artifact: { artifactId: 'a', parts: [{ text: MARKUP }] } } },
      { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } },
    ])
    await events.getByText('End of the answer').waitFor()
    await events.getByText('completed', { exact: true }).waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(await events.locator('img').count()).toBe(0)
    expect(problems).toEqual([])
  })

  test('console - the inbox and the events of a task are accessible, wide and narrow', async () => {
    const task = await inbox.send('check the screens')
    expect(await screenProblems(`${server.console}#/agents/laptop`, task)).toEqual([])
    expect(await screenProblems(`${server.console}#/agents/laptop/${task}`, 'check the screens')).toEqual([])
  })
})
