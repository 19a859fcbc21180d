/** What a model server may send to keep a thread busy: the run ends all the same, and so does the next one. */
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import { follow } from '../support/runs.ts'
import { startScriptedModels } from '../support/scripted-model.ts'
import type { ScriptedReply } from '../support/scripted-model.ts'

const many = (text: string, length = 1_000_000): string => text.repeat(Math.floor(length / text.length))
const says = (content: string): ScriptedReply => ({
	sse: [{ choices: [{ index: 0, delta: { content }, finish_reason: 'stop' }] }],
})
const pieces = (first: string, piece: string): ScriptedReply => ({
	sse: [
		...[first, ...Array<string>(100_000).fill(piece), 'end'].map((content) => ({ choices: [{ delta: { content } }] })),
		{ choices: [{ delta: {}, finish_reason: 'stop' }] },
	],
})

const hostile: Record<string, ScriptedReply> = {
	'a fence that never ends': says(`\`\`\`${many(' ')}x`),
	'lines between calls': says(`<tool_call>}${many('\n')}x</tool_call>`),
	'white space in a call': says(`<｜tool▁call▁begin｜>memory_stm_read{${many(' ')}x`),
	'parameters without an end': says(`<invoke name="memory_stm_read">${many('<parameter name="a">')}`),
	'other parameters without an end': says(`<function=memory_stm_read>${many('<parameter=a>')}`),
	'keys without an end': says(`<tool_call>memory_stm_read ${many('<arg_key>')}`),
	'many fences and calls': says(many('```a```<tool_call>{"name":"q"}</tool_call>')),
	'a beginning of nothing': pieces('```', ' '),
	'pieces of nothing': pieces('', '\n'),
	'details without an end': {
		sse: [
			...Array.from({ length: 400_000 }, (_, index) => ({ choices: [{ delta: { reasoning_details: [{ index }] } }] })),
			{ choices: [{ delta: { content: 'Yes.' }, finish_reason: 'stop' }] },
		],
	},
	'a refusal without an end': { status: 400, json: { error: { message: many('exceed') } } },
}

void t.test('no answer keeps a thread busy', async (t) => {
	const server = await startScriptedModels()
	const { url } = server.add(({ body }) => {
		const prompt = String(body.messages.at(-1).content).split('</context>\n\n').at(-1) ?? ''
		return hostile[prompt] ?? says('Yes.')
	})
	const gateway = await startGateway({
		config: `providers:\n  p: { kind: openai, base_url: '${url}', model: m }\ndefault_provider: p\n`,
	})
	t.teardown(async () => {
		await gateway.stop()
		await server.stop()
	})
	const ada = await follow(t, gateway, 'ada')
	for (const name of Object.keys(hostile)) {
		await t.test(name, async (t) => {
			const { event_type } = await ada.ended(await ada.start(name))
			t.equal(event_type, name.startsWith('a refusal') ? 'run.failed' : 'run.completed')
		})
	}
	await ada.complete('And is it well?')
})
