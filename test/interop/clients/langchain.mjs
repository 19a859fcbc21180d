import { HumanMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { city, equal, isCity, weatherTool, weatherArguments } from '../expected.mjs'

const settings = ({ url, token, agent }) => ({
	model: agent,
	apiKey: token,
	configuration: { baseURL: `${url}/v1` },
	maxRetries: 0,
})

export const name = '@langchain/openai'
export const features = {
	async chat(at) {
		equal((await new ChatOpenAI(settings(at)).invoke('say hello')).text, 'Hello!')
	},
	async stream(at) {
		let text = ''
		for await (const chunk of await new ChatOpenAI(settings(at)).stream('say hello')) text += chunk.text
		equal(text, 'Hello!')
	},
	async tools(at) {
		const weather = tool(({ city }) => `rain in ${city}`, { ...weatherTool, schema: weatherArguments })
		const model = new ChatOpenAI(settings(at)).bindTools([weather])
		const messages = [new HumanMessage('what is the weather')]
		const asked = await model.invoke(messages)
		const result = await weather.invoke(asked.tool_calls[0])
		equal((await model.invoke([...messages, asked, result])).text, 'It rains.')
	},
	async JSON(at) {
		for (const method of ['jsonSchema', 'functionCalling', 'jsonMode']) {
			const model = new ChatOpenAI(settings(at)).withStructuredOutput(city, { method, name: 'city' })
			isCity(await model.invoke(method === 'functionCalling' ? 'call for a city' : 'name a city'))
		}
	},
	async responses(at) {
		const answer = await new ChatOpenAI({ ...settings(at), useResponsesApi: true }).invoke('say hello')
		equal(answer.text, 'Hello!')
	},
	async embeddings(at) {
		const [vector] = await new OpenAIEmbeddings(settings(at)).embedDocuments(['one', 'two'])
		equal(typeof vector[0], 'number')
	},
}
