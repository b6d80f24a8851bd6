import { expect, onTestFinished, test } from 'vitest'

import { blocks, PageServer, shown } from '../testing/pages.ts'

test('docs - the operator finds the deepest queue, inspects and purges it, and finds the purge in the audit log', async () => {
  const server = await PageServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const session = blocks('docs/reference/management.md', 'A session')
  expect(session.filter(({ language }) => language === 'sh')).toHaveLength(5)
  for (const [i, command] of session.entries()) {
    if (command.language !== 'sh') continue
    const answer = session[i + 1]
    const pattern = answer?.language === 'json' ? shown(answer.text) : /^$/
    const first = server.run(command)
    // Reading may be done again: what others see of an action comes a moment after its answer.
    const read = command.text.includes('/api/actions/') ? () => first : () => server.run(command)
    await expect.poll(read, { timeout: 10_000, message: command.text }).toMatch(pattern)
  }
})
