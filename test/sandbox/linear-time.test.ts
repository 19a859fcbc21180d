/** Texts of users and models are parsed in linear time, since a thread executes many runs. */
import t from 'tap'
import { withoutOwnTags } from '../../sandbox/context/own-tags.ts'
import { callsInText } from '../../sandbox/models/text-calls.ts'
import { assertCpuTime } from '../support/cpu-time.ts'

const LENGTH = 160_000
const tools = [{ name: 'look', description: '', parameters: { type: 'object' } }]

const readers: Record<string, [read: (text: string) => unknown, texts: ((blanks: string) => string)[]]> = {
	'tags of the gateway': [
		withoutOwnTags,
		[(blanks) => `<${blanks}x`, (blanks) => `</${blanks}x`, (blanks) => `<${blanks}/context${blanks}x`],
	],
	'calls in text': [
		(text) => callsInText(text, tools),
		[
			(blanks) => `[TOOL_CALLS]look${blanks}x`,
			(blanks) => `[TOOL_CALLS]${blanks}look[CALL_ID]1${blanks}x`,
			(blanks) => `<tool_call>look<arg_key></arg_key>${blanks}x`,
			(blanks) => `<|tool_call_begin|>${blanks}look${blanks}x`,
			(blanks) => `<tool_call>{"name":"look"}${blanks}x`,
		],
	],
}

for (const [what, [read, texts]] of Object.entries(readers))
	void t.test(what, async (t) => {
		for (const textOf of texts) {
			const [short, long] = [textOf(' '.repeat(LENGTH / 8)), textOf(' '.repeat(LENGTH))]
			// As much text as in the eight short ones: in quadratic time it would take eight times as long.
			await assertCpuTime(t, textOf(' … '), {
				work: () => read(long),
				reference: () => {
					for (let n = 0; n < 8; n++) read(short)
				},
				times: 4,
				floor: 10,
			})
		}
	})
