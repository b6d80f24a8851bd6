import { expect, onTestFinished, test } from 'vitest'

import { blocks, PageServer, shown } from '../testing/shown-session.ts'

test('docs - the operator finds the deepest queue, looks into it, purges it, and reads in the audit log who did', async () => {
  const server = await PageServer.start()
  onTestFinished(() => server[Symbol.asyncDispose]())
  const session = blocks('docs/management.md', 'A session')
  expect(session.filter(({ language }) => language === 'sh')).toHaveLength(5)
  for (const [i, command] of session.entries()) {
    if (command.language !== 'sh') continue
    const answer = session[i + 1]
    if (answer?.language !== 'json') expect(await server.run(command), command.text).toBe('')
    // What others see of an action comes a moment after its answer.
    else if (command.text.includes('/api/actions/'))
      expect(await server.run(command), command.text).toMatch(shown(answer.text))
    else await expect.poll(() => server.run(command), { timeout: 10_000 }).toMatch(shown(answer.text))
  }
})
