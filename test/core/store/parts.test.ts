/** Small parts that engines share, each compared with a simple implementation. */
import fc from 'fast-check'
import t from 'tap'
import { decodeValue, encodeValue } from '../../../core/store/codec.ts'
import { compareKeys, endOf, isWithin, joinKey, splitKey } from '../../../core/store/keys.ts'
import { keyNumber, numberKey } from '../../../core/store/lmdb/tables.ts'
import type { Key } from '../../../core/store/ports.ts'
import { openSharedRecords } from '../../../core/store/shared-records.ts'
import { arbitraryText } from '../../support/arbitrary-text.ts'
const part = arbitraryText({ minLength: 1, maxLength: 6 }).filter((text) => !text.includes('\0'))
const key = fc.array(part, { minLength: 1, maxLength: 4 }) as fc.Arbitrary<string[]> as unknown as fc.Arbitrary<Key>

void t.test('joined keys sort by their UTF-8 bytes', async (t) => {
	fc.assert(
		fc.property(key, key, (a, b) => {
			const [x, y] = [joinKey(a), joinKey(b)]
			return Math.sign(compareKeys(x, y)) === Buffer.compare(Buffer.from(x), Buffer.from(y))
		}),
		{ numRuns: 2000 },
	)
	t.ok(compareKeys(joinKey(['a', '\uffff']), joinKey(['a', '😀'])) < 0)
})

void t.test('a key is within a prefix if it begins with the parts of the prefix', async (t) => {
	fc.assert(
		fc.property(key, key, (a, b) => {
			const [joined, prefix] = [joinKey(a), joinKey(b)]
			const expected = b.every((part, i) => a[i] === part)
			const inRange = compareKeys(joined, prefix) >= 0 && compareKeys(joined, endOf(prefix)) < 0
			return isWithin(joined, prefix) === expected && inRange === expected
		}),
		{ numRuns: 2000 },
	)
	t.ok(isWithin(joinKey(['a', 'b']), joinKey(['a'])))
	t.strictSame(splitKey(joinKey(['a', 'ü', ' '])), ['a', 'ü', ' '])
})

void t.test('shared records are frozen, and their total size is limited', async (t) => {
	const shared = openSharedRecords(10_000)
	const value = { list: [{ text: 'x' }], bytes: new Uint8Array([1]) }
	const kept = shared.keep('a', { key: ['a'], value, rev: '1' }, 100)
	t.equal(shared.find('a')?.entry, kept)
	t.throws(() => value.list.push({ text: 'y' }), TypeError)
	t.throws(() => Object.assign(value.list[0] as object, { text: 'y' }), TypeError)
	shared.keep('gone', undefined)
	t.strictSame(shared.find('gone')?.entry, undefined)
	t.ok(shared.find('gone'), 'a missing record is remembered, too')
	for (let n = 0; n < 100; n++) shared.keep(`many ${n}`, { key: ['m'], value: n, rev: '1' }, 1_000)
	t.equal(shared.find('a'), undefined, 'the record that was cached first is dropped first')
	const left = Array.from({ length: 100 }, (_, n) => n).filter((n) => shared.find(`many ${n}`))
	t.strictSame(left, left.toSorted((a, b) => a - b).slice(-left.length))
	t.ok(left.length > 3 && left.length < 10 && left.at(-1) === 99)
	shared.keep('huge', { key: ['h'], value: 1, rev: '1' }, 20_000)
	t.equal(shared.find('huge'), undefined)
	shared.forget('many 99')
	t.equal(shared.find('many 99'), undefined)
})

void t.test('encoded numbers sort like numbers', async (t) => {
	fc.assert(
		fc.property(fc.maxSafeNat(), fc.maxSafeNat(), (a, b) => {
			const order = numberKey(a) < numberKey(b) ? -1 : numberKey(a) > numberKey(b) ? 1 : 0
			return order === Math.sign(a - b) && keyNumber(numberKey(a)) === a
		}),
	)
	t.equal(numberKey(Number.MAX_SAFE_INTEGER).length, numberKey(0).length)
})

void t.test('a decoded value equals the encoded one', async (t) => {
	const value = fc.letrec((tie) => ({
		any: fc.oneof(
			{ depthSize: 'small' },
			arbitraryText(),
			fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (Object.is(n, -0) ? 0 : n)),
			fc.boolean(),
			fc.constant(null),
			fc.uint8Array({ maxLength: 20 }),
			fc.array(tie('any'), { maxLength: 4 }),
			fc.dictionary(fc.oneof(fc.string(), fc.constant('__proto__')), tie('any'), { maxKeys: 4, noNullPrototype: true }),
		),
	})).any
	fc.assert(
		fc.property(value, fc.integer({ min: 0, max: 20 }), (value, headroom) => {
			const bytes = encodeValue(value, headroom)
			t.strictSame(decodeValue(bytes, headroom, bytes.length), value)
		}),
		{ numRuns: 300 },
	)
})
