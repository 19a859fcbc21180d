/** Text of arbitrary code points. */
import fc from 'fast-check'

/** Surrogates, which are not valid code points by themselves. */
const SURROGATES = { from: 0xd800, count: 0x800 }

/** One code point, for `unit` and `stringUnit`. The unit `binary` would first list all code points, which takes a second. */
export const arbitraryCharacter: fc.Arbitrary<string> = fc
	.integer({ min: 0, max: 0x10ffff - SURROGATES.count })
	.map((number) => String.fromCodePoint(number < SURROGATES.from ? number : number + SURROGATES.count))

export function arbitraryText(options: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
	return fc.string({ unit: arbitraryCharacter, ...options })
}
