/** A scripted model that uses a skill as a real one would: calls it, and reads every file that the result lists. */
import { startScriptedModels } from './scripted-model.ts'

export interface ReadingModel {
	/** For `base_url`; kind `openai`. The prompt of a run is the name of a tool. */
	url: string
	/** The result of each tool. */
	answers: Map<string, string>
	/** Texts by skill name and path, joined from their parts; for a binary file, the note. */
	texts: Map<string, string>
	/** Errors of calls. */
	errors: string[]
	stop(): Promise<void>
}

const AT_ONCE = 4

interface Message {
	role: string
	content: unknown
}

interface Call {
	name: string
	args: Record<string, unknown>
}

export async function startReadingModel(): Promise<ReadingModel> {
	const models = await startScriptedModels()
	const answers = new Map<string, string>()
	const texts = new Map<string, string>()
	const errors: string[] = []
	/** Files that remain to be read in the current run, a few at a time, so that no result is abridged. */
	let pending: Call[] = []
	const { url } = models.add(({ body }, n) => {
		const messages = body.messages as Message[]
		// Skips remarks of the gateway, which a model also gets as user messages.
		const from = messages.findLastIndex((one) => one.role === 'user' && /Use skill_/.test(JSON.stringify(one.content)))
		const prompt = /skill_[a-z0-9_-]+/.exec(JSON.stringify(messages[from]?.content))?.[0] ?? ''
		const rounds = messages.slice(from + 1).filter((one) => one.role === 'assistant').length
		if (rounds === 0) return calls([{ name: prompt, args: {} }], n)
		const latest = messages.slice(messages.findLastIndex((one) => one.role === 'assistant') + 1)
		const results = latest.filter((one) => one.role === 'tool').map((one) => String(one.content))
		if (rounds === 1) answers.set(prompt, results[0] ?? '')
		pending = rounds === 1 ? filesIn(results[0] ?? '') : [...results.flatMap(next), ...pending]
		return calls(pending.splice(0, AT_ONCE), n)
	})
	return { url, answers, texts, errors, stop: () => models.stop() }

	function next(result: string): Call[] {
		if (!result.startsWith('{"skill":')) {
			errors.push(result)
			return []
		}
		const { skill, path, text, note, next_offset: offset } = JSON.parse(result.split('\n', 1)[0] ?? '')
		const key = `${skill}/${path}`
		texts.set(key, (texts.get(key) ?? '') + (text ?? note))
		return typeof offset === 'number' ? [{ name: 'skill_read_file', args: { skill, path, offset } }] : []
	}
}

/** The files that a skill's result lists. */
function filesIn(answer: string): Call[] {
	const [, list = ''] = /<skill_files>\n([\s\S]*?)\n<\/skill_files>/.exec(answer) ?? []
	const skill: unknown = JSON.parse(/, skill ("(?:[^"\\]|\\.)*") and/.exec(list)?.[1] ?? '""')
	const paths = list.split('\n').slice(1)
	return paths.map((line) => ({
		name: 'skill_read_file',
		args: { skill, path: line.replace(/ \(\d+ bytes[^()]*\)$/, '').replaceAll('&amp;', '&') },
	}))
}

/** An answer with these calls; without calls, the final answer. */
function calls(wanted: readonly Call[], n: number): { sse: unknown[] } {
	const tool_calls = wanted.map(({ name, args }, index) => ({
		index,
		id: `call_${n}_${index}`,
		type: 'function',
		function: { name, arguments: JSON.stringify(args) },
	}))
	const delta = wanted.length > 0 ? { role: 'assistant', tool_calls } : { role: 'assistant', content: 'Done.' }
	const about = { id: `answer_${n}`, object: 'chat.completion.chunk', created: 0, model: 'reader' }
	const finish_reason = wanted.length > 0 ? 'tool_calls' : 'stop'
	return {
		sse: [
			{ ...about, choices: [{ index: 0, delta, finish_reason: null }] },
			{ ...about, choices: [{ index: 0, delta: {}, finish_reason }] },
		],
	}
}
