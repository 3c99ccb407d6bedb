'use strict';

// node print_names.js PAGE: the names of the values of the page's first pass, as JSON.

const {openPage} = require('./page_reader.js');

openPage(process.argv[2]).then(({page}) => {
  console.log(JSON.stringify(page.passes[0].values.map((value) => value.name)));
}, (error) => {
  console.error(error.message);
  process.exit(1);
});
