import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { replaceFile, testFolder } from '@signalbox/testkit/test-folder'
import { expect, test } from 'vitest'

import { createConfig } from '../src/config/load.ts'
import { startServer } from '../src/server.ts'
import { command } from './support/commands.ts'
import { serve } from './support/server.ts'

function settingsFile(text: string): string {
  const file = join(testFolder(), 'channels.yaml')
  writeFileSync(file, text)
  return file
}

test('channel settings - CHANNEL_SETTINGS_FILE applies at the start and after a change', async () => {
  const file = settingsFile('- { type: queues, match: "jobs.*", retry: { max_receive_count: 5 } }')
  const { broker } = await serve({ channelSettingsFile: file })
  const receives = () => broker.settings.of('queues', 'jobs.a').retry?.max_receive_count
  expect(receives()).toBe(5)
  replaceFile(file, '[{"type": "queues", "match": "jobs.*", "retry": {"max_receive_count": 7}}]')
  await expect.poll(receives, { timeout: 20_000 }).toBe(7)
})

test.each([
  ['no list', '{}', 'it must be an array of {type, match, …}'],
  ['no YAML', '- [', 'it is neither YAML nor JSON'],
  ['a bad entry', '- { type: queues, match: jobs, retry: { jitter: 2 } }', 'entry 0: retry.jitter is 2; it must be '],
  [
    'an entry twice',
    '- &a { type: queues, match: jobs, description: x }\n- *a',
    'entry 1: queues "jobs" is listed twice',
  ],
])('channel settings - a file with %s stops the start', async (_what, text, problem) => {
  const config = createConfig({ channelSettingsFile: settingsFile(text), log: { level: 'silent' } })
  await expect(startServer(config)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    problems: [expect.stringContaining(problem)],
  })
})

test('channel settings - commands set members, show where they come from, and remove them', async () => {
  const { api } = await serve({ channelSettingsFile: settingsFile('- { type: queues, match: "*", description: all }') })
  const run = (...args: string[]) => command(['channels', ...args, '--api', api.url])
  expect(await run('get', 'jobs.a')).toMatchObject({ stdout: expect.stringMatching(/description +all +\* \(file\)/) })
  const dry = await run('set', 'jobs.*', 'retry.max_receive_count=5', '--dry-run')
  expect(dry.stdout).toContain('would be set: jobs.* {"retry":{"max_receive_count":5}}; channels that match: 0')
  await run('set', 'jobs.*', 'retry.max_receive_count=5', 'description=image jobs')
  await run('set', 'jobs.*', 'retry.dead_letter_queue=jobs.failed')
  const got = await run('get', 'jobs.a', '--json')
  expect(JSON.parse(got.stdout)).toMatchObject({
    effective: { description: 'image jobs', retry: { max_receive_count: 5, dead_letter_queue: 'jobs.failed' } },
    origins: { retry: { match: 'jobs.*', source: 'api' } },
  })
  expect((await run('unset', 'jobs.*', 'description')).stdout).toContain('set: jobs.* {"retry":')
  expect((await run('settings')).stdout).toMatch(/queues +jobs\.\* +retry +anonymous/)
  expect((await run('unset', 'jobs.*')).stdout).toContain('removed: jobs.*')
  expect(await run('unset', 'jobs.*')).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('no entry for queues'),
  })
  const wrong = await run('set', 'jobs.*', 'retry.jitter=7')
  expect(wrong).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('retry.jitter is 7; it must be a number from 0'),
  })
  expect((await run('set', 'jobs.*', 'retry')).stderr).toContain('SETTING is "retry"; allowed is MEMBER=VALUE')
})
