/** Text of any code points whatever. */
import fc from 'fast-check'

/** Half of a surrogate pair is no code point. */
const HALVES = { from: 0xd800, count: 0x800 }

/** One code point. For `unit` and `stringUnit`: the name `binary` would list all code points first, which takes a second. */
export const anyCharacter: fc.Arbitrary<string> = fc
	.integer({ min: 0, max: 0x10ffff - HALVES.count })
	.map((number) => String.fromCodePoint(number < HALVES.from ? number : number + HALVES.count))

export function anyText(options: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
	return fc.string({ unit: anyCharacter, ...options })
}
