/** Text of any code points whatever. */
import fc from 'fast-check'

/** Half of a surrogate pair is no code point. */
const HALVES = { from: 0xd800, count: 0x800 }

/** What `fc.string({ unit: 'binary' })` gives, without the second that it takes to list all code points first. */
export function anyText(options: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
	const point = fc
		.integer({ min: 0, max: 0x10ffff - HALVES.count })
		.map((number) => (number < HALVES.from ? number : number + HALVES.count))
	return fc.array(point, options).map((points) => String.fromCodePoint(...points))
}
