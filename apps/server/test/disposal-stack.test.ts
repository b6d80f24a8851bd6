import { expect, test } from 'vitest'

import { DisposalStack } from '../src/lifecycle/disposal-stack.ts'

test('teardown - parts close one after the other, the last opened first, and once', async () => {
  const closed: string[] = []
  const stack = new DisposalStack()
  stack.use({ [Symbol.dispose]: () => void closed.push('first') })
  stack.use(undefined)
  stack.use({
    async [Symbol.asyncDispose]() {
      await Promise.resolve()
      closed.push('second')
    },
  })
  stack.defer(() => closed.push('third'))
  await Promise.all([stack.disposeAsync(), stack.disposeAsync()])
  expect(closed).toEqual(['third', 'second', 'first'])
})

test('teardown - a part that fails does not keep the others open', async () => {
  const closed: string[] = []
  const stack = new DisposalStack()
  stack.defer(() => closed.push('first'))
  stack.defer(() => Promise.reject(new Error('broken')))
  stack.defer(() => closed.push('third'))
  await expect(stack.disposeAsync()).rejects.toThrow('broken')
  expect(closed).toEqual(['third', 'first'])
})

test('teardown - several failures are told together', async () => {
  const stack = new DisposalStack()
  stack.defer(() => Promise.reject(new Error('one')))
  stack.defer(() => Promise.reject(new Error('two')))
  await expect(stack.disposeAsync()).rejects.toMatchObject({ errors: [new Error('two'), new Error('one')] })
})
