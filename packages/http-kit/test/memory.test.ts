import { describe, expect, test } from 'vitest'

import { AdmissionControl, derivedLimits, HeldBytes } from '../src/index.ts'

const MIB = 2 ** 20

describe('limits - memory', () => {
  test.each([256, 512, 2_048, 4_096, 65_536])(
    'limits - budgets of %i MiB fit into it, with room for copies',
    (memory) => {
      const { callerBodyBytes, cardBytes, processBodyBytes, streamBytes, unreadBytes } = derivedLimits(memory * MIB)
      const sum = cardBytes + processBodyBytes + streamBytes + unreadBytes
      expect(sum).toBeLessThanOrEqual((memory * MIB * 9) / 16)
      expect(callerBodyBytes).toBeLessThanOrEqual(processBodyBytes / 2)
      expect(callerBodyBytes).toBeLessThanOrEqual(64 * MIB)
    },
  )

  test('limits - the documented figures of 1 GB with the default heap', () => {
    expect(derivedLimits(512 * MIB)).toEqual({
      processBodyBytes: 128 * MIB,
      callerBodyBytes: 64 * MIB,
      unreadBytes: 64 * MIB,
      streamBytes: 32 * MIB,
      cardBytes: 64 * MIB,
    })
  })

  test('limits - a limit that is set stays as it is', () => {
    const bodyBytes = 2 ** 40
    expect(new AdmissionControl({ limits: { process: { bodyBytes } } }).limits.process.bodyBytes).toBe(bodyBytes)
  })

  test('limits - bytes of work without a request count for its caller until they are released', () => {
    const admission = new AdmissionControl({ limits: { caller: { bodyBytes: 100 }, process: { bodyBytes: 150 } } })
    const one = new HeldBytes(admission, 'client:one')
    const two = new HeldBytes(admission, 'client:two')
    expect(one.charge(60)).toBeUndefined()
    expect(one.charge(60)?.limit).toBe('caller_body_bytes')
    expect(two.charge(100)?.limit).toBe('process_body_bytes')
    one.discharge(20)
    expect(one.bytes).toBe(40)
    expect(two.charge(100)).toBeUndefined()
    one.release()
    two.release()
    one.release()
    expect(admission.use.bodyBytes).toBe(0)
  })
})
