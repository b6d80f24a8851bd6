import { describe } from 'vitest'

import { settlementCases } from './settlement-cases.ts'

describe('M14 on node', () => {
  settlementCases('node')
})
