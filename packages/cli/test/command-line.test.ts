// cspell:ignore CWORD COMPREPLY
import { execFileSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { COMMANDS } from '@signalbox/cli'
import { command } from '@signalbox/cli/testing'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, test } from 'vitest'

function token(folder: string, ...args: readonly string[]) {
  return command(['token', '--folder', folder, ...args])
}

test.each([
  [[], 'token: --client-id is missing; write --client-id=NAME with the name of the caller'],
  [['--client-id', 'a b'], 'token: --client-id: allowed are 1 to 256 visible ASCII characters'],
  [
    ['--client-id', 'a', '--roles', 'Root'],
    'token: --roles: "Root" is unknown; allowed are ReadOnly, ReadWrite, Admin',
  ],
  [['--client-id', 'a', '--ttl', 'forever'], 'token: --ttl: "forever"; allowed is a time such as 90s, 30m, 12h or 7d'],
  [['--client-id', 'a', '--ttl', '0s'], 'token: --ttl: "0s"; allowed is a time such as 90s, 30m, 12h or 7d'],
  [['--client-id', 'a', 'b'], 'token: "b": not an option'],
  [
    ['--client', 'a', '--client-id', 'a'],
    'token: --client: unknown; did you mean --client-id? allowed are --client-id, --roles, --ttl, --folder, --jwks, --json',
  ],
])('command line - token %j is refused', async (args, problem) => {
  const folder = join(testFolder(), 'keys')
  const { code, stdout, stderr } = await token(folder, ...args)
  expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: `signalbox: ${problem}\n` })
  expect(() => statSync(folder)).toThrow('ENOENT')
})

test('command line - token says when the folder cannot be written', async () => {
  const path = join(testFolder(), 'file')
  writeFileSync(path, '')
  const { code, stderr } = await token(join(path, 'keys'), '--client-id', 'a')
  expect(code).toBe(1)
  expect(stderr).toMatch(/^signalbox: token: --folder: no key pair can be created or read in .* \(ENOTDIR\)\n$/)
})

test('command line - every command has a usage line and an example in its help, and words of the catalog alone', async () => {
  for (const { name, usage, example } of COMMANDS) {
    const { code, stdout } = await command([...name.split(' '), '--help'])
    expect({ name, code }).toEqual({ name, code: 0 })
    expect(stdout).toContain(`Usage: ${usage}\n`)
    expect(stdout).toMatch(/\nExample\n {2}signalbox /)
    expect(example.startsWith(`${name} `) || example === name).toBe(true)
  }
})

test('command line - the completions of bash offer commands, second words and options', async () => {
  const { stdout } = await command(['completion', 'bash'])
  const complete = (...words: readonly string[]) => {
    const ask = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _signalbox; echo "\${COMPREPLY[*]}"`
    return execFileSync('bash', ['-euc', `${stdout}\n${ask}`], { encoding: 'utf8' }).trim()
  }
  expect(complete('signalbox', 're')).toBe('receive redrive resume restore recover')
  expect(complete('signalbox', 'log', '')).toBe('read append')
  expect(complete('signalbox', 'log', 'read', '--fo')).toBe('--follow')
  expect(complete('signalbox', 'completion', 'f')).toBe('fish')
  expect(complete('signalbox', 'stats', 'q')).toBe('queues')
  expect(complete('signalbox', 'send', 'jobs', '--max')).toBe('--max-receives')
  for (const shell of ['zsh', 'fish']) {
    const script = (await command(['completion', shell])).stdout
    for (const { name } of COMMANDS) expect(script).toContain(name.split(' ').at(-1))
  }
  expect((await command(['completion', 'csh'])).stderr).toContain('allowed is bash, zsh, fish')
})

test.each([
  [['token', '--help'], 'token --client-id NAME'],
  [['policy', '-h'], 'policy check FILE --client NAME'],
  [['policy', 'check', '--help'], 'policy check FILE --client NAME'],
  [['backup', '--help'], 'backup FILE [--store-path FOLDER]'],
  [['recover', '--help'], 'recover FOLDER NEW_FOLDER'],
])('command line - %j says how the command is written', async (args, usage) => {
  const { code, stdout, stderr } = await command(args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain(`Usage: signalbox ${usage}`)
})
