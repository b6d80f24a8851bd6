import { expect, onTestFinished, test } from 'vitest'

import { blocks, PageServer, shown } from '../testing/pages.ts'

/** Sections whose commands a reader pastes one after the other. */
const SESSIONS = [
  { page: 'docs/getting-started.md', section: 'First messages', commands: 3 },
  { page: 'docs/guides/send-and-receive.md', section: 'A worker', commands: 3 },
  { page: 'docs/guides/publish-and-subscribe.md', section: 'Stored events', commands: 2 },
] as const

test.each(SESSIONS)('docs - the commands of $page print the documented output', async ({ page, section, commands }) => {
  const server = await PageServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const session = blocks(page, section)
  expect(session.filter(({ language }) => language === 'sh')).toHaveLength(commands)
  for (const [i, command] of session.entries()) {
    if (command.language !== 'sh') continue
    const next = session[i + 1]
    const pattern = next === undefined || next.language === 'sh' ? /^$/ : shown(next.text)
    expect(await server.run(command), command.text).toMatch(pattern)
  }
})
