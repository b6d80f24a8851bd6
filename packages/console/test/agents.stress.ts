import { describe, expect, test } from 'vitest'

import { EchoAgent, MARKUP, TRANSLATOR } from './agents.ts'
import { beforeScreens, hasBrowser, openPage } from './browser.ts'
import { screenProblems } from './check-screen.ts'
import { Server } from './server.ts'

let server: Server
let agent: EchoAgent
beforeScreens(async (held) => {
  server = held.use(await Server.start())
  agent = held.use(await EchoAgent.start())
  await agent.register(server, TRANSLATOR)
  await agent.register(server, { agent_id: 'planner', name: 'Planner', instance_id: 'a' })
})

describe.skipIf(!hasBrowser)('in a real browser', () => {
  test('console - agents are listed, found by text, and opened with the keyboard', async () => {
    const { page } = await openPage(`${server.console}#/agents`)
    await page.getByRole('row', { name: /planner/ }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('transl')
    await page.getByRole('row', { name: /planner/ }).waitFor({ state: 'detached' })
    await expect.poll(() => new URL(page.url()).hash).toBe('#/agents?search=transl')
    await page.getByRole('row', { name: /translator/ }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Translator' }).waitFor()
  })

  test('console - a card is shown as people read it, and its text is never markup', async () => {
    const { page, problems } = await openPage(`${server.console}#/agents/translator`)
    await page.getByText('Lingua Ltd').waitFor()
    await page.getByText('0.3.0, 1.0').waitFor()
    await page.getByRole('heading', { name: MARKUP }).waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(problems).toEqual([])
  })

  test('console - a test call shows the events of the agent as they come, and their hidden characters', async () => {
    const { page } = await openPage(`${server.console}#/agents/translator`)
    await page.getByRole('textbox', { name: 'Message' }).fill('hello')
    await page.getByRole('button', { name: 'Send' }).click()
    const events = page.getByRole('list', { name: 'Events' })
    await events.getByText('<U+202E>reversed').first().waitFor()
    expect(await events.getByText('Status', { exact: true }).count()).toBe(1)
    await events.getByText('Done', { exact: true }).waitFor()
    await page.getByRole('textbox', { name: 'Message' }).fill('wait')
    await page.getByRole('button', { name: 'Send' }).click()
    await events.getByText('Status', { exact: true }).waitFor()
    await page.getByText('Waiting for the answer.').waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('Waiting for the answer.').waitFor({ state: 'detached' })
  })

  test('console - an agent is deregistered after its id was typed', async () => {
    await agent.register(server, { agent_id: 'temporary', name: 'Temporary' })
    const { page } = await openPage(`${server.console}#/agents/temporary`)
    await page.getByRole('button', { name: 'Deregister' }).click()
    const dialog = page.getByRole('dialog', { name: 'Deregister agent' })
    expect(await dialog.getByRole('button', { name: 'Deregister' }).isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('temporary')
    await dialog.getByRole('button', { name: 'Deregister' }).click()
    await page.getByText('Agent temporary deregistered.').waitFor()
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor()
  })

  test('console - an agent that is not registered is an error', async () => {
    const { page } = await openPage(`${server.console}#/agents/nobody`)
    await page.getByText('AGENT_NOT_FOUND').waitFor()
    expect(await page.getByRole('button', { name: 'Deregister' }).count()).toBe(0)
  })

  test('console - the screens of agents are accessible, wide and narrow', async () => {
    expect(await screenProblems(`${server.console}#/agents`, 'translator')).toEqual([])
    expect(await screenProblems(`${server.console}#/agents/translator`, 'Lingua Ltd')).toEqual([])
  })
})
