import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
import { city, equal, isCity, weatherTool } from '../expected.mjs'

const open = ({ url, token }) => new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 })
const user = (content) => [{ role: 'user', content }]

export const name = 'openai'
export const features = {
	async chat(at) {
		const answer = await open(at).chat.completions.create({ model: at.agent, messages: user('say hello') })
		equal(answer.choices[0].message.content, 'Hello!')
	},
	async stream(at) {
		const body = { model: at.agent, messages: user('say hello'), stream: true, stream_options: { include_usage: true } }
		let text = ''
		let usage
		for await (const chunk of await open(at).chat.completions.create(body)) {
			text += chunk.choices[0]?.delta.content ?? ''
			usage ??= chunk.usage
		}
		equal(text, 'Hello!')
		equal(typeof usage.total_tokens, 'number')
	},
	async tools(at) {
		const run = open(at).chat.completions.runTools({
			model: at.agent,
			messages: user('what is the weather'),
			tools: [
				{
					type: 'function',
					function: { ...weatherTool, parse: JSON.parse, function: ({ city }) => `rain in ${city}` },
				},
			],
		})
		equal(await run.finalContent(), 'It rains.')
	},
	async JSON(at) {
		const answer = await open(at).chat.completions.parse({
			model: at.agent,
			messages: user('name a city'),
			response_format: zodResponseFormat(city, 'city'),
		})
		isCity(answer.choices[0].message.parsed)
	},
	async responses(at) {
		const openai = open(at)
		const first = await openai.responses.create({ model: at.agent, input: 'say hello' })
		equal(first.output_text, 'Hello!')
		const body = { model: at.agent, input: 'and again', previous_response_id: first.id, stream: true }
		let text = ''
		for await (const event of await openai.responses.create(body))
			if (event.type === 'response.output_text.delta') text += event.delta
		equal(text, 'Hello again!')
	},
	async embeddings(at) {
		const { data } = await open(at).embeddings.create({ model: at.agent, input: ['one', 'two'] })
		equal(data.length, 2)
		equal(typeof data[1].embedding[0], 'number')
	},
	async models(at) {
		const { data } = await open(at).models.list()
		equal(
			data.some(({ id }) => id === `svc/${at.agent}`),
			true,
		)
	},
	async errors(at) {
		const error = await open(at)
			.chat.completions.create({ model: 'nobody', messages: user('say hello') })
			.catch((reason) => reason)
		equal(error.status, 404)
		equal(error.code, 'model_not_found')
	},
}
