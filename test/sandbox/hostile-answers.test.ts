/** Answers of a model server that are slow to parse: the run ends nevertheless, and the next one completes. */
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import { follow } from '../support/runs.ts'
import { startScriptedModels } from '../support/scripted-model.ts'
import type { ScriptedReply } from '../support/scripted-model.ts'

const many = (text: string, length = 1_000_000): string => text.repeat(Math.floor(length / text.length))
const textReply = (content: string): ScriptedReply => ({
	sse: [{ choices: [{ index: 0, delta: { content }, finish_reason: 'stop' }] }],
})
const pieces = (first: string, piece: string): ScriptedReply => ({
	sse: [
		...[first, ...Array<string>(100_000).fill(piece), 'end'].map((content) => ({ choices: [{ delta: { content } }] })),
		{ choices: [{ delta: {}, finish_reason: 'stop' }] },
	],
})

const hostile: Record<string, ScriptedReply> = {
	'an unclosed fence': textReply(`\`\`\`${many(' ')}x`),
	'lines between calls': textReply(`<tool_call>}${many('\n')}x</tool_call>`),
	'white space in a call': textReply(`<｜tool▁call▁begin｜>memory_stm_read{${many(' ')}x`),
	'unclosed parameters': textReply(`<invoke name="memory_stm_read">${many('<parameter name="a">')}`),
	'unclosed parameters of another format': textReply(`<function=memory_stm_read>${many('<parameter=a>')}`),
	'unclosed keys': textReply(`<tool_call>memory_stm_read ${many('<arg_key>')}`),
	'many fences and calls': textReply(many('```a```<tool_call>{"name":"q"}</tool_call>')),
	'a fence before many blanks': pieces('```', ' '),
	'many blank pieces': pieces('', '\n'),
	'many reasoning_details': {
		sse: [
			...Array.from({ length: 400_000 }, (_, index) => ({ choices: [{ delta: { reasoning_details: [{ index }] } }] })),
			{ choices: [{ delta: { content: 'Yes.' }, finish_reason: 'stop' }] },
		],
	},
	'a long refusal': { status: 400, json: { error: { message: many('exceed') } } },
}

void t.test('no answer blocks a thread', async (t) => {
	const models = await startScriptedModels()
	const { url } = models.add(({ body }) => {
		const prompt = String(body.messages.at(-1).content).split('</context>\n\n').at(-1) ?? ''
		return hostile[prompt] ?? textReply('Yes.')
	})
	const gateway = await startGateway({
		config: `providers:\n  p: { kind: openai, base_url: '${url}', model: m }\ndefault_provider: p\n`,
	})
	t.teardown(async () => {
		await gateway.stop()
		await models.stop()
	})
	const ada = await follow(t, gateway, 'ada')
	for (const name of Object.keys(hostile)) {
		await t.test(name, async (t) => {
			const { event_type } = await ada.ended(await ada.start(name))
			t.equal(event_type, name === 'a long refusal' ? 'run.failed' : 'run.completed')
		})
	}
	await ada.complete('Does the next run complete?')
})
