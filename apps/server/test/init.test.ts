import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { testFolder } from '@signalbox/testkit/test-folder'

import { runCli } from './support/cli.ts'
import { command } from './support/commands.ts'
import { DEPLOY, filesIn } from './support/deploy.ts'

test.each([
  ['docker', ['compose', 'docker']],
  ['kubernetes', ['kubernetes']],
])('command line - init %s writes its folders side by side', async (kind, folders) => {
  const folder = join(testFolder(), 'new')
  const { code, stdout } = await command(['init', kind, folder])
  expect(code).toBe(0)
  const written = filesIn(folder)
  const expected = folders.flatMap((name) => filesIn(join(DEPLOY, name)).map((file) => join(name, file)))
  expect(written).toEqual(expected.filter((file) => !file.endsWith('.tgz')).toSorted())
  expect(stdout.trim().split('\n')).toHaveLength(written.length)
})

test.each(['systemd', 'prometheus', 'grafana', 'logs'])('command line - init %s writes its files', async (kind) => {
  const folder = join(testFolder(), 'new')
  const { code, stderr } = await command(['init', kind, folder])
  expect(code).toBe(0)
  const written = filesIn(folder)
  expect(written).toEqual(filesIn(join(DEPLOY, kind)))
  expect(written.length).toBeGreaterThan(0)
  expect(stderr).toContain(`Next, in ${folder}:`)
})

test('command line - init without a folder writes into one that is named after the kind', async () => {
  const cwd = testFolder()
  const { code, stderr } = await runCli({ args: ['init', 'systemd'], cwd })
  expect(code).toBe(0)
  expect(filesIn(join(cwd, 'signalbox-systemd'))).toEqual(filesIn(join(DEPLOY, 'systemd')))
  expect(stderr).toContain('Next, in signalbox-systemd:')
})

test('command line - init keeps the mode of scripts', async () => {
  const folder = testFolder()
  await command(['init', 'docker', folder])
  expect(statSync(join(folder, 'compose/nats/setup.sh')).mode & 0o100).toBe(0o100)
})

test('command line - init overwrites nothing', async () => {
  const folder = testFolder()
  writeFileSync(join(folder, 'signalbox.yaml'), 'mine')
  const { code, stderr } = await command(['init', 'systemd', folder])
  expect(code).toBe(1)
  expect(stderr).toMatch(/^signalbox: init: .*signalbox\.yaml exists; choose another folder, or remove it\n$/)
  expect(filesIn(folder)).toEqual(['signalbox.yaml'])
  expect(readFileSync(join(folder, 'signalbox.yaml'), 'utf8')).toBe('mine')
})

test.each([
  [[], /^signalbox: init: allowed is signalbox init docker\|systemd/],
  [['heroku'], /^signalbox: init: "heroku" is unknown; allowed are docker, systemd, kubernetes, prometheus, grafana/],
  [['docker', 'a', 'b'], /^signalbox: init: allowed is signalbox init/],
  [['toString'], /^signalbox: init: "toString" is unknown/],
])('command line - init %j is refused', async (args, problem) => {
  const { code, stderr } = await command(['init', ...args])
  expect(code).toBe(2)
  expect(stderr).toMatch(problem)
})
