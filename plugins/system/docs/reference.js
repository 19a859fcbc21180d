/* global SwaggerUIBundle, document -- runs in the browser, after Swagger UI's own script */

/** Operations that cannot be tried from this page: another address is another origin, and a stream never ends. */
const onlyWhatCanBeTried = () => ({
	statePlugins: {
		spec: {
			wrapSelectors: {
				allowTryItOutFor: () => (state, path, method) => {
					const item = state.getIn(['json', 'paths', path])
					const types = item?.getIn([method, 'responses', '200', 'content'])
					return !item?.get('servers') && !types?.has('text/event-stream')
				},
			},
		},
	},
})

SwaggerUIBundle({
	url: '/v1/openapi.json',
	domNode: document.querySelector('#reference'),
	presets: [SwaggerUIBundle.presets.apis],
	plugins: [onlyWhatCanBeTried],
	layout: 'BaseLayout',
	deepLinking: true,
	docExpansion: 'list',
	defaultModelsExpandDepth: 0,
	displayOperationId: true,
	filter: true,
	showCommonExtensions: true,
	tryItOutEnabled: true,
	// A token is kept as long as the page is open.
	persistAuthorization: false,
	// The badge would send the document to another host.
	validatorUrl: null,
	queryConfigEnabled: false,
})
